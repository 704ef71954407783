import { createServer, type Socket } from 'node:net';
import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { CapabilityRequest, ScriptCalls } from '../../features/delegation/orchestrate/api.ts';
import { AppError, toAppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import { parseJson } from '../../kernel/json.ts';
import type { Log } from '../../kernel/log.ts';
import { listenOnFile } from '../socket-file.ts';
import type { Dispatch } from './dispatch.ts';

export interface CapabilitySocketDeps {
  readonly file: string;
  readonly calls: ScriptCalls;
  /** Runs the methods that scripts may call in addition to tools. */
  readonly dispatch: Dispatch;
  readonly clock: Clock;
  readonly log: Log;
}

const maxLineBytes = 65_536;
/** Time limit for the line to arrive, and for the other side to close; the answer takes as long as its tool. */
const lineMs = 5_000;
const maxConnections = 256;

const Line = once(() =>
  z.object({
    bearer: z.string().min(1).max(256),
    method: z.string().min(1).max(128),
    params: z.record(z.string(), z.unknown()).default({}),
    operationId: z.string().min(1).max(256).optional(),
  }),
);

const expected = 'expected one line of JSON {"bearer", "method", "params"?, "operationId"?} of at most 64 KiB';

/**
 * The internal capability socket (json-rpc.md §4): jailed scripts call tools here, one line and one answer per connection. The file is
 * 0600 in the 0700 home; the bearer in the line identifies the caller. The gateway does not serve any of it.
 */
export async function createCapabilitySocket(deps: CapabilitySocketDeps): Promise<AsyncDisposable> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    void serve(deps, socket);
  });
  server.maxConnections = maxConnections;
  return listenOnFile(server, deps.file, () => {
    for (const socket of open) socket.destroy();
  });
}

async function serve({ calls, dispatch, clock, log }: CapabilitySocketDeps, socket: Socket): Promise<void> {
  let reply: object;
  try {
    reply = { result: await answer(calls, dispatch, parse(await readLine(socket, clock))) };
  } catch (failure) {
    const error = toAppError(failure);
    if (error.code === 'internal') log.error({ err: failure }, 'A call of a script failed');
    const { retryAfterMs } = error.details;
    reply = { error: { code: error.code, message: error.message, ...(retryAfterMs !== undefined && { retryAfterMs }) } };
  }
  if (socket.destroyed) return;
  socket.end(`${JSON.stringify(reply)}\n`);
  // Unread input would reset the connection before the answer arrives; and a client that does not close its side must not hold a slot for long.
  socket.resume();
  socket.once(
    'close',
    clock.after(lineMs, () => socket.destroy()),
  );
}

async function answer(calls: ScriptCalls, dispatch: Dispatch, request: CapabilityRequest): Promise<unknown> {
  const admitted = await calls.admit(request);
  if (admitted.route === 'tool') return admitted.run();
  const { method, params, call } = admitted;
  const replied = await dispatch({ jsonrpc: '2.0', id: 1, method, params }, call);
  if (replied?.error !== undefined) throw new AppError('precondition_failed', replied.error.message);
  return replied?.result;
}

function parse(line: string): CapabilityRequest {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    throw new AppError('parse_error', `Malformed request: ${expected}`);
  }
  const parsed = Line().safeParse(value);
  if (!parsed.success) throw new AppError('invalid_params', `Malformed request: ${parsed.error.issues[0]?.path.join('.') ?? ''}: ${expected}`);
  return parsed.data;
}

/** Reads up to the first line feed; fails when the line is too long or does not arrive in time. */
function readLine(socket: Socket, clock: Clock): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const parts: Buffer[] = [];
  let size = 0;
  const cancel = clock.after(lineMs, () => reject(new AppError('timeout', `No line came within ${lineMs} ms: ${expected}`)));
  const take = (part: Buffer) => {
    const end = part.indexOf(10);
    size += end === -1 ? part.length : end;
    if (size > maxLineBytes) {
      socket.pause();
      return reject(new AppError('payload_too_large', expected));
    }
    parts.push(end === -1 ? part : part.subarray(0, end));
    if (end === -1) return;
    socket.pause();
    resolve(Buffer.concat(parts).toString('utf8'));
  };
  socket.on('data', take);
  socket.on('end', () => reject(new AppError('parse_error', `Malformed request: ${expected}`)));
  socket.on('close', () => reject(new AppError('cancelled', 'The script is gone')));
  return promise.finally(() => {
    cancel();
    socket.off('data', take);
  });
}
