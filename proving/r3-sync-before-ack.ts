import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { answerTo, askWith, nonceOf, proofConfig, startEchoProvider } from './lib/provider.ts';
import { openSocket, rpcCall } from './lib/rpc.ts';
import { type Call, readStrace, straceCommand } from './lib/strace.ts';

/**
 * R3: no acknowledgement leaves before its bytes are synced. The daemon's system calls are traced: for each answer the
 * commit frame of its unit of work must be in the write-ahead log, and a sync that began after that frame must have
 * returned, before the first byte that acknowledges is written to the socket.
 */
export interface R3Options {
  /** Units of each kind. */
  readonly each: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface R3Report {
  readonly acks: number;
  readonly byKind: Readonly<Record<string, number>>;
  /** Acknowledged while bytes of the unit were unsynced. */
  readonly early: readonly string[];
  /** Answers that the trace does not show: the harness would be blind. */
  readonly unseen: readonly string[];
  readonly syncs: number;
}

interface Unit {
  readonly kind: string;
  /** Bytes that the unit leaves in the log. */
  readonly stored: string;
  /** Bytes of the acknowledgement. */
  readonly answer: string;
  /** The acknowledgement is this mark, on the connection that carried `answer`. */
  readonly mark?: string;
}

const Completion = z.object({ id: z.string() });

export async function proveSyncBeforeAck(options: R3Options): Promise<R3Report> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  const trace = await makeHome();
  const port = await freePort();
  const traceFile = join(trace, 'strace.out');
  try {
    await writeConfig(home, proofConfig(provider.url));
    const daemon = await startDaemon({
      home,
      port,
      under: straceCommand(traceFile),
      readyTimeoutMs: 60_000,
      ...(options.broken !== undefined && { broken: options.broken }),
    });
    let units: Unit[];
    try {
      units = await work(daemon.port, daemon.token, options.each);
    } finally {
      await daemon.kill();
    }
    const report = judge(await readStrace(traceFile), units, port);
    options.progress?.(
      `R3: ${report.acks} acknowledgements, ${report.early.length} before the sync, ${report.unseen.length} unseen, ${report.syncs} syncs`,
    );
    return report;
  } finally {
    await provider.close();
    await removeHome(home);
    await removeHome(trace);
  }
}

async function work(port: number, token: string, each: number): Promise<Unit[]> {
  const units: Unit[] = [];
  const target = { port, token };
  const socket = await openSocket({ port, token });
  const complete = async (nonce: string, stream: boolean) => {
    const reply = await http({
      port,
      path: '/v1/chat/completions',
      headers: bearer(token),
      body: { model: 'local/test-model', stream, messages: [{ role: 'user', content: askWith(nonce) }] },
    });
    const id = stream ? (/"id":"(chatcmpl-[^"]+)"/.exec(reply.text)?.[1] ?? '') : Completion.parse(JSON.parse(reply.text)).id;
    units.push({ kind: stream ? 'v1-stream' : 'v1', stored: id, answer: id, ...(stream && { mark: 'data: [DONE]' }) });
  };
  const kinds: Record<string, (nonce: string, index: number) => Promise<void>> = {
    async rpc(nonce, index) {
      await rpcCall(target, 'agent.execute', { message: askWith(nonce), sessionKey: `r3:rpc:${index}` });
      units.push({ kind: 'rpc', stored: answerTo(nonce), answer: answerTo(nonce) });
    },
    async ws(nonce, index) {
      await socket.call('agent.execute', { message: askWith(nonce), sessionKey: `r3:ws:${index}` });
      units.push({ kind: 'ws', stored: answerTo(nonce), answer: answerTo(nonce) });
    },
    async token(nonce) {
      await rpcCall(target, 'tokens.create', { id: nonce, scopes: ['rpc'] });
      units.push({ kind: 'token', stored: nonce, answer: nonce });
    },
    async agent(nonce) {
      await rpcCall(target, 'agents.create', { agentId: nonce, config: { model: 'local/test-model' } });
      units.push({ kind: 'agent', stored: nonce, answer: nonce });
    },
    v1: (nonce) => complete(nonce, false),
    'v1-stream': (nonce) => complete(nonce, true),
  };
  await Promise.all(
    Object.entries(kinds).map(async ([kind, run]) => {
      for (let index = 0; index < each; index += 1) await run(nonceOf([kind, index]), index);
    }),
  );
  socket.close();
  return units;
}

/** Frame headers of the log are 24 bytes; bytes 4 to 7 are not zero in the one that commits. */
function isCommitHeader(call: Call): boolean {
  return call.data.length === 24 && call.data.slice(4, 8) !== '\0\0\0\0';
}

function judge(calls: readonly Call[], units: readonly Unit[], port: number): R3Report {
  const logWrites = calls.filter((call) => call.on.endsWith('-wal') && call.name.startsWith('pwrite'));
  const syncs = calls.filter((call) => call.on.endsWith('-wal') && (call.name === 'fdatasync' || call.name === 'fsync'));
  const local = new RegExp(`^TCP(?:v6)?:\\[.*:${port}->`);
  const replies = calls.filter((call) => local.test(call.on));
  const early: string[] = [];
  const unseen: string[] = [];
  const byKind: Record<string, number> = {};
  for (const unit of units) {
    byKind[unit.kind] = (byKind[unit.kind] ?? 0) + 1;
    const ack = acknowledgement(replies, unit);
    if (ack === undefined) {
      unseen.push(`${unit.kind} ${unit.answer}`);
      continue;
    }
    const problem = unsynced(logWrites, syncs, unit, ack);
    if (problem !== undefined) early.push(`${unit.kind} ${unit.stored}: ${problem}`);
  }
  return { acks: units.length, byKind, early, unseen, syncs: syncs.length };
}

function acknowledgement(replies: readonly Call[], unit: Unit): Call | undefined {
  const first = replies.find((call) => call.data.includes(unit.answer));
  if (first === undefined || unit.mark === undefined) return first;
  const { mark } = unit;
  return replies.find((call) => call.start >= first.start && call.on === first.on && call.data.includes(mark));
}

/** Returns why the acknowledgement came too early; undefined when it did not. */
function unsynced(logWrites: readonly Call[], syncs: readonly Call[], unit: Unit, ack: Call): string | undefined {
  const at = logWrites.findIndex((call) => call.data.includes(unit.stored));
  const page = logWrites[at];
  if (page === undefined || page.start > ack.start) return 'answered before its bytes were in the log';
  // A frame is a header and a page; the commit frame is this one or the first later one whose header says so.
  let commit: Call | undefined;
  for (let i = Math.max(0, at - 1); i < logWrites.length; i += 1) {
    const header = logWrites[i];
    if (header !== undefined && header.on === page.on && isCommitHeader(header)) {
      commit = logWrites[i + 1] ?? header;
      break;
    }
  }
  if (commit === undefined || commit.end > ack.start) return 'answered before its commit frame was in the log';
  const { end } = commit;
  const synced = syncs.some((sync) => sync.on === page.on && sync.start > end && sync.end < ack.start);
  return synced ? undefined : 'answered before a sync that began after its commit frame had returned';
}
