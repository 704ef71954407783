import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { readBooks } from './lib/delegation-books.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { nonceOf } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { type Cell, type CellStop, cellStops, sleeping, StopCell, stopConfig } from './lib/stop-cell.ts';
import { startStopModel, type StopModel } from './lib/stop-model.ts';
import { type Scene, type WorkName, works } from './lib/stop-work.ts';

/**
 * R32 over every route: each stop against each kind of work that it covers. After it no model is called, no process is left, nothing
 * is in the background, and every waiting caller gets an answer.
 */
export interface CellsReport {
  readonly cells: number;
  /** The longest time to effect, in milliseconds. */
  readonly slowestMs: Readonly<Partial<Record<CellStop, number>>>;
  readonly wrong: readonly string[];
}

const conversations = [
  '/rpc',
  '/ws',
  '/mcp',
  '/api/chat',
  '/api/chat keyed',
  '/api/chat/stream',
  'script',
  'approval',
  'foreground command',
  'waits for its lane',
] as const;
const completions = ['/v1/chat/completions', '/v1/chat/completions stream', '/v1/responses', '/v1/responses stream'] as const;
const left = ['command', 'call'] as const;
const delegated = ['subagent', 'command of a sub-agent', 'graph'] as const;
const durable = ['job', 'session.send'] as const;
const waiting = ['waiting sub-agent', 'waiting graph', 'waiting job', 'waiting session.send'] as const;

/** Which stops cover which work. */
const meant: Readonly<Record<CellStop, readonly WorkName[]>> = {
  'run.kill': [
    ...conversations.filter((name) => name !== 'waits for its lane'),
    ...completions,
    ...left,
    ...delegated,
    ...durable,
    'webhook',
    ...waiting,
    'waiting webhook',
  ],
  'subagent.kill': ['subagent', 'command of a sub-agent', 'waiting sub-agent'],
  'background.stop': left,
  // A call that is past its check completes, so that only work without a call in flight has to end.
  'lease.revoke': [...left, 'command of a sub-agent'],
  'tokens.revoke': [...conversations, ...completions, ...left, ...delegated, ...durable, ...waiting],
  'agents.suspend': [...conversations, ...completions, ...left, ...delegated, ...durable, 'webhook', ...waiting, 'waiting webhook'],
  'agents.delete': [...conversations, ...completions, ...left, ...delegated, ...durable, ...waiting],
  'session.delete': [...conversations, ...left, 'session.send', 'waiting session.send', 'waiting webhook'],
  'several at once': ['/rpc', '/v1/chat/completions stream', ...left, 'subagent', 'graph'],
};

export const allCells = Object.entries(meant).flatMap(([stop, names]) => names.map((work) => ({ stop: stop as CellStop, work })));

const beginMs = 20_000;
const Token = z.looseObject({ id: z.string(), secret: z.string() });

export async function proveStopCells(options: {
  readonly seed: number;
  readonly cells?: readonly Cell[];
  readonly broken?: string | readonly string[];
  /** How long an effect is waited for; a little longer than the limit when absent. */
  readonly withinMs?: number;
  readonly progress?: (line: string) => void;
}): Promise<CellsReport> {
  const { cells = allCells, seed, broken, withinMs, progress } = options;
  const [home, port, model] = [await makeHome(), await freePort(), await startStopModel()];
  await writeConfig(home, stopConfig(model.url, cells));
  const slowestMs: Partial<Record<CellStop, number>> = {};
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
    for (const [index, cell] of cells.entries()) {
      const one = new StopCell(daemon, model, { cell, index, nonce: nonceOf([seed, index]) });
      const played = await play(one, model, withinMs).catch((error: unknown) => ({ tookMs: 0, wrong: [String(error)] }));
      slowestMs[cell.stop] = Math.max(slowestMs[cell.stop] ?? 0, Math.round(played.tookMs));
      wrong.push(...played.wrong.map((line) => `${cell.stop} × ${cell.work}: ${line}`));
      if (index % 20 === 19) progress?.(`R32 after ${index + 1} of ${cells.length} cells: ${wrong.length} wrong`);
    }
    return { cells: cells.length, slowestMs, wrong };
  } finally {
    await daemon?.kill();
    await model.close();
    await removeHome(home);
  }
}

/** Plays one cell: the work begins, and ends by the stop in time. */
async function play(
  cell: StopCell,
  model: StopModel,
  withinMs = cellStops[cell.cell.stop] + 3000,
): Promise<{ readonly tookMs: number; readonly wrong: readonly string[] }> {
  const { stop } = cell.cell;
  await cell.begin();
  const go = await cell.aim();
  const fromMs = performance.now();
  await go();
  const wrong: string[] = [];
  const tookMs = await effectOf(cell, fromMs, withinMs, wrong);
  const effectMs = performance.now();
  await cell.retry();
  await pause(cell.work.waits === true ? 1500 : 250);
  if (model.lastAsked(cell.nonce) > effectMs + 50) wrong.push('a model was asked after the effect');
  if (stop === 'tokens.revoke' && cell.work.refusal !== undefined && cell.answered !== undefined) {
    const answer = await Promise.race([cell.answered, pause(100).then(() => 'no answer')]);
    if (!cell.work.refusal.test(answer)) wrong.push(`the caller read ${answer.slice(0, 200)}`);
  }
  await cell.cleanUp();
  return { tookMs, wrong };
}

async function effectOf(cell: StopCell, fromMs: number, withinMs: number, wrong: string[]): Promise<number> {
  const limit = cellStops[cell.cell.stop];
  let isAnswered = cell.answered === undefined;
  void cell.answered?.then(() => (isAnswered = true));
  const missing = async () => (isAnswered ? cell.missing() : 'its caller waits');
  let what = await missing();
  while (what !== undefined && performance.now() - fromMs < withinMs) {
    await pause(20);
    what = await missing();
  }
  const tookMs = performance.now() - fromMs;
  if (what !== undefined) wrong.push(`${what} after ${Math.round(tookMs)} ms`);
  else if (tookMs > limit) wrong.push(`the effect came after ${Math.round(tookMs)} ms`);
  return tookMs;
}

/** Revokes a token and kills the daemon immediately, and stops a daemon with background commands: nothing of either is left. */
export async function proveStopsOverRestart(options: { readonly seed: number }): Promise<{ readonly wrong: readonly string[] }> {
  const [home, port, model] = [await makeHome(), await freePort(), await startStopModel()];
  await writeConfig(home, stopConfig(model.url, []));
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port });
    const token = Token.parse(await rpcCall(daemon, 'tokens.create', { scopes: ['*'] }));
    const scene = (index: number, from: Daemon): Scene => ({
      daemon: from,
      agentId: 'default',
      nonce: nonceOf([options.seed, index]),
      holder: { port, token: token.secret },
    });
    const first = scene(9001, daemon);
    const { rootRunId = '' } = await works['command of a sub-agent'].begin(first);
    for (const deadline = performance.now() + beginMs; (await sleeping(first.nonce)) < 2 && performance.now() < deadline;) await pause(30);
    await rpcCall(daemon, 'tokens.revoke', { id: token.id });
    await daemon.kill();
    const askedMs = performance.now();
    daemon = await startDaemon({ home, port });
    await pause(3000);
    const { runs } = await readBooks(home);
    if (runs.some((run) => run.root_run_id === rootRunId && (run.state === 'queued' || run.state === 'running')))
      wrong.push('restart: runs of the revoked token continue');
    if (model.lastAsked(first.nonce) > askedMs) wrong.push('restart: a model was called for the revoked token');
    if ((await sleeping(first.nonce)) > 0) wrong.push('restart: processes are left');

    const second = { ...scene(9002, daemon), holder: { port, token: daemon.token } };
    await works.command.begin(second);
    for (const deadline = performance.now() + beginMs; (await sleeping(second.nonce)) < 2 && performance.now() < deadline;) await pause(30);
    const { code } = await daemon.stop(10_000);
    if (code !== 0) wrong.push(`stop: the daemon ended with ${code}`);
    if ((await sleeping(second.nonce)) > 0) wrong.push('stop: commands in the background are left');
    return { wrong };
  } finally {
    await daemon?.kill();
    await model.close();
    await removeHome(home);
  }
}
