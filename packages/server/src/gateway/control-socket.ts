import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { isAbsolute, join } from 'node:path';
import * as z from 'zod';
import type { Clock } from '../kernel/clock.ts';
import { AppError, toAppError } from '../kernel/app-error.ts';
import { parseJson } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import { listenOnFile } from './socket-file.ts';

export interface ControlSocketDeps {
  readonly file: string;
  readonly backupsDir: string;
  readonly info: () => { readonly address: string | null; readonly pid: number; readonly version: string };
  readonly backup: (file: string, onProgress: (done: number, total: number) => void) => Promise<{ readonly bytes: number }>;
  /** Answers a gateway request with the owner's authority. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  readonly clock: Clock;
  readonly log: Log;
}

const BackupRequest = z.strictObject({ file: z.string().refine(isAbsolute, 'expected an absolute path').optional() });
const maxBodyBytes = 65_536;

/**
 * Listens for the owner: HTTP on a Unix socket (0600 in the 0700 home). A user who can open it owns the installation, so no token is
 * required; the command line makes backups through it, and reaches a daemon that has no listener.
 */
export async function createControlSocket(deps: ControlSocketDeps): Promise<AsyncDisposable> {
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '/';
    if (!path.startsWith('/control/')) return deps.serve(incoming, outgoing);
    if (path === '/control/info' && incoming.method === 'GET') return answer(outgoing, 200, deps.info());
    if (path === '/control/backup' && incoming.method === 'POST') return void runBackup(incoming, outgoing);
    answer(outgoing, 404, { error: 'No such path', code: 'not_found' });
  });

  async function runBackup(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const line = (value: object) => outgoing.write(`${JSON.stringify(value)}\n`);
    outgoing.setHeader('content-type', 'application/jsonl');
    try {
      const request = BackupRequest.safeParse(parseJson((await readAll(incoming)) || '{}', { maxDepth: 4 }));
      if (!request.success) throw new AppError('invalid_params', 'file: expected an absolute path, and nothing else');
      const { file = defaultBackupFile(deps.backupsDir, deps.clock) } = request.data;
      const { bytes } = await deps.backup(file, (done, total) => line({ progress: { done, total } }));
      line({ result: { file, bytes } });
    } catch (failure) {
      const error = toAppError(failure);
      deps.log.error({ err: failure }, 'A backup failed');
      line({ error: { code: error.code, message: failure instanceof Error ? failure.message : error.message } });
    }
    outgoing.end();
  }

  return listenOnFile(server, deps.file, () => server.closeAllConnections());
}

function answer(outgoing: ServerResponse, status: number, body: object): void {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Returns `gatehouse-2026-11-21T10-30-00Z.db`, to the second: a second backup within the same second is refused. */
export function defaultBackupFile(backupsDir: string, clock: Clock): string {
  const at = Temporal.Instant.fromEpochMilliseconds(clock.now()).toString({ smallestUnit: 'second' });
  return join(backupsDir, `gatehouse-${at.replaceAll(':', '-')}.db`);
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) throw new Error('The request is larger than 64 KiB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
