import type { GraphNodeType } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { RunEnd } from '../../subagents/api.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { NodeWork, RunWork } from '../definition/definition.ts';
import { type DriverInput, nextStep, type Said, soFar, type Wish } from './drivers.ts';
import { Limit } from './limit.ts';
import type { NodeNow } from './live-node.ts';
import type { CancelReason } from '../rows.ts';

export type Phase = 'initialized' | 'progress' | 'completed' | 'partial_complete' | 'failed' | 'aborted';

/** What a node needs of its graph. */
export interface NodeHost {
  readonly clock: Clock;
  /** Aborted when this process has nothing to do with the graph any more: what waits is left as it is. */
  readonly halted: AbortSignal;
  /** Aborted when the time of the graph is over: what runs is ended. */
  readonly expired: AbortSignal;
  /** Aborted when nothing more is to begin. */
  readonly cancelled: AbortSignal;
  /** Why no further run may begin: time or budget is used up. */
  readonly exhausted: () => Extract<CancelReason, 'timeout' | 'budget'> | undefined;
  /** Stores nodes, with what people are told of it; rejects when the graph is another's, or has ended. */
  readonly save: (nodes: readonly NodeNow[], inbox?: readonly InboxMessage[]) => Promise<void>;
  /** A node is over, and its end on the way to its row: writes are kept in the order in which they are asked for. */
  readonly over: () => void;
  /** Announces what a node is at. */
  readonly tell: (node: NodeNow) => void;
  readonly phase: (node: NodeNow, phase: Phase) => void;
  /** Everything that the agents of the node are told. */
  readonly taskOf: (node: NodeNow) => string | Promise<string>;
  /** Makes text of one agent fit to be read by another. */
  readonly fence: (text: string, from: string, clean: boolean) => string;
  readonly own: DriverInput['own'];
  /** Starts a run, or finds the one that was started for the same step. */
  readonly start: (node: NodeNow, wish: Wish, key: string, conversationOf: string | undefined) => Promise<string>;
  readonly ended: (runId: string) => Promise<RunEnd>;
  /** Stops the time of the graph and that of the node while the run waits; what it returns is called at the end of the run, and gives for how long. */
  readonly whileWaiting: (runId: string, limit: Limit | undefined) => () => number;
  readonly kill: (runId: string) => Promise<void>;
  readonly ask: (node: NodeNow) => Promise<NodeEnd>;
  /** What is told of the end of a node. */
  readonly messagesOf: (node: NodeNow) => readonly InboxMessage[];
}

export interface NodeEnd {
  readonly state: 'completed' | 'failed' | 'skipped';
  readonly output?: string;
  readonly error?: string;
  readonly partial?: boolean;
  /** A further try makes sense. */
  readonly again?: boolean;
}

/** Characters of what a node that was ended early must have to count as done in part. */
const leastPartial = 500;
/** Characters of an output that are kept. */
const maxOutput = 65_536;
const longestPauseMs = 30_000;

/** Runs a node to its end, with its further tries; goes on with one that an earlier process began. */
export async function runNode(node: NodeNow, host: NodeHost): Promise<void> {
  for (;;) {
    const end = await tryOnce(node, host);
    const error = end.error === undefined ? null : headOf(end.error, leastPartial);
    if (end.again === true && node.attempt <= node.spec.retries && !host.cancelled.aborted) {
      Object.assign(node, { state: 'pending', attempt: node.attempt + 1, done: [], error, deadlineMs: null, progress: undefined });
      await host.save([node]);
      host.tell(node);
      await pause(host, Math.min(longestPauseMs, 1000 * 2 ** (node.attempt - 2)));
      if (!host.cancelled.aborted) continue;
    }
    const { state, output = null, partial = false } = end;
    const kept = output === null ? null : headOf(output, maxOutput);
    const cause = state === 'failed' ? node.cause : null;
    Object.assign(node, { state, output: kept, error, cause, partial, endedAtMs: host.clock.now(), deadlineMs: null, progress: undefined });
    const saved = host.save([node], host.messagesOf(node));
    // What waits for it begins in the same commit.
    host.over();
    await saved;
    host.tell(node);
    host.phase(node, phaseOf(end));
    return;
  }
}

const phaseOf = ({ state, partial }: NodeEnd): Phase =>
  state === 'completed' ? (partial === true ? 'partial_complete' : 'completed') : state === 'failed' ? 'failed' : 'aborted';

async function tryOnce(node: NodeNow, host: NodeHost): Promise<NodeEnd> {
  const { work } = node.spec;
  if (work?.type === 'approval-gate') return host.ask(node);
  const { clock } = host;
  let begun = Promise.resolve();
  if (node.state !== 'running') {
    const atMs = clock.now();
    const deadlineMs = node.spec.timeoutMs === undefined ? null : atMs + node.spec.timeoutMs;
    Object.assign(node, { state: 'running', startedAtMs: node.startedAtMs ?? atMs, deadlineMs, error: null });
    begun = begin(node, host);
    // Whoever waits for it learns of it.
    begun.catch(() => {});
  }
  const late = new AbortController();
  const limit = node.deadlineMs === null ? undefined : new Limit(clock, node.deadlineMs - clock.now(), () => late.abort());
  try {
    return await drive(node, work, host, { over: AbortSignal.any([late.signal, host.expired]), limit, begun });
  } finally {
    limit?.end();
  }
}

async function begin(node: NodeNow, host: NodeHost): Promise<void> {
  await host.save([node]);
  host.tell(node);
  host.phase(node, 'initialized');
}

interface Drive {
  /** Aborted when the node may not go on. */
  readonly over: AbortSignal;
  readonly limit: Limit | undefined;
  /** The row says that the node runs. Its first runs are asked for meanwhile, and share the commit. */
  readonly begun: Promise<void>;
}

async function drive(node: NodeNow, work: RunWork | undefined, host: NodeHost, { over, limit, begun }: Drive): Promise<NodeEnd> {
  const told = host.taskOf(node);
  // Nearly all are known at once, and the first runs share the commit then.
  const task = typeof told === 'string' ? told : await told;
  const input: DriverInput = { node: node.spec, work, task, fence: (text, from) => host.fence(text, from, !node.tainted), own: host.own };
  for (;;) {
    const step = nextStep(input, node.done);
    if (step.kind !== 'run') await begun;
    if (step.kind === 'complete')
      return { state: 'completed', output: step.output, partial: node.done.flat().some(({ partial }) => partial === true) };
    if (step.kind === 'fail') {
      const errors = node.done.flat().flatMap(({ ok, error }) => (ok ? [] : [error ?? '']));
      if (over.aborted || errors.some((error) => error === 'killed')) return early(node, work, over.aborted ? 'timeout' : step.error, host);
      return { state: 'failed', error: step.error, again: true };
    }
    const exhausted = over.aborted ? 'timeout' : host.exhausted();
    if (exhausted !== undefined || isTyped(work)) await begun;
    if (exhausted !== undefined) return early(node, work, exhausted, host);
    node.progress = step.progress;
    if (isTyped(work)) {
      host.tell(node);
      host.phase(node, 'progress');
    }
    const at = `${node.attempt}/${node.done.length}`;
    // A further try goes on in the conversation of the one before, where there is just one.
    const before = isTyped(work) || node.attempt === 1 ? undefined : (node.runId ?? undefined);
    node.done.push(await Promise.all(step.wishes.map((wish, index) => runOne(node, wish, `${at}/${index}`, before, host, { over, limit, begun }))));
    // Of one run the end of the node follows at once.
    if (isTyped(work)) await host.save([node]);
  }
}

const isTyped = (work: NodeWork | undefined): work is NodeWork & { type: Exclude<GraphNodeType, 'agent'> } =>
  work !== undefined && work.type !== 'agent';

/** A node that is not let go on: what it has done so far counts when it is worth something. */
function early(node: NodeNow, work: RunWork | undefined, error: string, host: NodeHost): NodeEnd {
  const output = soFar({ work }, node.done);
  if (output.length > leastPartial) return { state: 'completed', output, partial: true };
  // The time of the node alone may be enough in another try.
  return { state: 'failed', error, again: error === 'timeout' && !host.expired.aborted };
}

async function runOne(
  node: NodeNow,
  wish: Wish,
  key: string,
  before: string | undefined,
  host: NodeHost,
  { over, limit, begun }: Drive,
): Promise<Said> {
  let stopKilling = () => {};
  let goOn = () => 0;
  try {
    const [runId] = await Promise.all([host.start(node, wish, key, before), begun]);
    host.halted.throwIfAborted();
    node.runId = runId;
    goOn = host.whileWaiting(runId, limit);
    const kill = () => void host.kill(runId);
    if (over.aborted) kill();
    else over.addEventListener('abort', kill, { once: true });
    stopKilling = () => over.removeEventListener('abort', kill);
    host.tell(node);
    const end = await host.ended(runId);
    node.tokens += end.telemetry?.tokensUsedTotal ?? 0;
    const cost = end.telemetry === undefined ? 0 : end.telemetry.costTotal;
    node.costNano += Math.round((cost ?? 0) * 1e9);
    node.unpriced ||= cost === null;
    node.effectsRefused += end.completion.effectsRefused ?? 0;
    node.tainted ||= end.tainted;
    node.cause = end.cause ?? node.cause;
    return saidOf(end);
  } catch (error) {
    // Neither what is left to another process nor a daemon that stops says anything of the node.
    if (host.halted.aborted || !(error instanceof AppError) || error.code === 'unavailable' || error.code === 'internal') throw error;
    return { ok: false, text: '', error: error.message };
  } finally {
    stopKilling();
    const waitedMs = goOn();
    if (node.deadlineMs !== null) node.deadlineMs += waitedMs;
  }
}

const endedEarly: ReadonlySet<string> = new Set(['killed', 'watchdog_timeout', 'ghost_sweep']);

function saidOf({ completion, text }: RunEnd): Said {
  const { endReason, errorKind } = completion;
  if (endReason === 'completed') return { ok: true, text };
  if (endedEarly.has(endReason) && text.length > leastPartial) return { ok: true, text, partial: true };
  return { ok: false, text, error: endReason === 'failed' ? (errorKind ?? endReason) : endReason };
}

/** Waits; shorter when nothing more is to begin. */
async function pause({ clock, halted, cancelled }: NodeHost, ms: number): Promise<void> {
  const waited = Promise.withResolvers<void>();
  const wake = () => waited.resolve();
  const cancel = clock.after(ms, wake);
  for (const signal of [halted, cancelled]) signal.addEventListener('abort', wake, { once: true });
  if (halted.aborted || cancelled.aborted) wake();
  try {
    await waited.promise;
  } finally {
    cancel();
    for (const signal of [halted, cancelled]) signal.removeEventListener('abort', wake);
  }
  halted.throwIfAborted();
}
