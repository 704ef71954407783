import type { GraphNodeType } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { sleep } from '../../../../kernel/timers.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { RunEnd } from '../../subagents/api.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { NodeWork, RunWork } from '../definition/definition.ts';
import { type AgentTask, type DriverInput, nextStep, partialOutput, type RunResult } from './drivers.ts';
import { Limit } from './limit.ts';
import type { LiveNode } from './live-node.ts';
import type { CancelReason } from '../rows.ts';

export type Phase = 'initialized' | 'progress' | 'completed' | 'partial_complete' | 'failed' | 'aborted';

/** Operations that a node needs from its graph. */
export interface NodeHost {
  readonly clock: Clock;
  /** Aborted when this process does not hold the graph any more: waiting work is left unchanged. */
  readonly halted: AbortSignal;
  /** Aborted when the time of the graph is over: running work is stopped. */
  readonly expired: AbortSignal;
  /** Aborted when nothing more may begin. */
  readonly cancelled: AbortSignal;
  /** Returns why no further run may begin: time or budget is used up. */
  readonly exhausted: () => Extract<CancelReason, 'timeout' | 'budget'> | undefined;
  /** Stores nodes together with their messages; rejects when another process holds the graph, or it has ended. */
  readonly save: (nodes: readonly LiveNode[], inbox?: readonly InboxMessage[]) => Promise<void>;
  /** Signals that a node has ended and its row is being written; writes keep the order of their calls. */
  readonly over: () => void;
  /** Announces the progress of a node. */
  readonly announce: (node: LiveNode) => void;
  readonly phase: (node: LiveNode, phase: Phase) => void;
  /** Returns the complete input of the agents of the node. */
  readonly taskOf: (node: LiveNode) => string | Promise<string>;
  /** Fences the text of one agent for another. */
  readonly fence: (text: string, from: string, clean: boolean) => string;
  readonly own: DriverInput['own'];
  /** Starts a run, or finds the one that was started for the same step. */
  readonly start: (node: LiveNode, agentTask: AgentTask, key: string, conversationOf: string | undefined) => Promise<string>;
  readonly ended: (runId: string) => Promise<RunEnd>;
  /** Pauses the limits of graph and node while the run waits; call the returned function at the end of the run, it returns for how long. */
  readonly whileWaiting: (runId: string, limit: Limit | undefined) => () => number;
  readonly kill: (runId: string) => Promise<void>;
  readonly ask: (node: LiveNode) => Promise<NodeEnd>;
  /** Returns the messages about the end of a node. */
  readonly messagesOf: (node: LiveNode) => readonly InboxMessage[];
}

export interface NodeEnd {
  readonly state: 'completed' | 'failed' | 'skipped';
  readonly output?: string;
  readonly error?: string;
  readonly partial?: boolean;
  /** Whether a retry makes sense. */
  readonly canRetry?: boolean;
}

/** Minimum characters of a partial output that counts as a result. */
const leastPartial = 500;
/** Maximum characters of a stored output. */
const maxOutput = 65_536;
const longestPauseMs = 30_000;

/** Runs a node to its end, including retries; resumes one that an earlier process began. */
export async function runNode(node: LiveNode, host: NodeHost): Promise<void> {
  for (;;) {
    const end = await tryOnce(node, host);
    const error = end.error === undefined ? null : headOf(end.error, leastPartial);
    if (end.canRetry === true && node.attempt <= node.spec.retries && !host.cancelled.aborted) {
      Object.assign(node, { state: 'pending', attempt: node.attempt + 1, done: [], error, deadlineMs: null, progress: undefined });
      await host.save([node]);
      host.announce(node);
      await pause(host, Math.min(longestPauseMs, 1000 * 2 ** (node.attempt - 2)));
      if (!host.cancelled.aborted) continue;
    }
    const { state, output = null, partial = false } = end;
    const kept = output === null ? null : headOf(output, maxOutput);
    const cause = state === 'failed' ? node.cause : null;
    Object.assign(node, { state, output: kept, error, cause, partial, endedAtMs: host.clock.now(), deadlineMs: null, progress: undefined });
    const saved = host.save([node], host.messagesOf(node));
    // Dependent nodes begin in the same commit.
    host.over();
    await saved;
    host.announce(node);
    host.phase(node, phaseOf(end));
    return;
  }
}

const phaseOf = ({ state, partial }: NodeEnd): Phase =>
  state === 'completed' ? (partial === true ? 'partial_complete' : 'completed') : state === 'failed' ? 'failed' : 'aborted';

async function tryOnce(node: LiveNode, host: NodeHost): Promise<NodeEnd> {
  const { work } = node.spec;
  if (work?.type === 'approval-gate') return host.ask(node);
  const { clock } = host;
  let begun = Promise.resolve();
  if (node.state !== 'running') {
    const atMs = clock.now();
    const deadlineMs = node.spec.timeoutMs === undefined ? null : atMs + node.spec.timeoutMs;
    Object.assign(node, { state: 'running', startedAtMs: node.startedAtMs ?? atMs, deadlineMs, error: null });
    begun = begin(node, host);
    // Errors are handled where it is awaited.
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

async function begin(node: LiveNode, host: NodeHost): Promise<void> {
  await host.save([node]);
  host.announce(node);
  host.phase(node, 'initialized');
}

interface Drive {
  /** Aborted when the node may not continue. */
  readonly over: AbortSignal;
  readonly limit: Limit | undefined;
  /** Resolves when the row says that the node runs. The first runs start in the meantime and share the commit. */
  readonly begun: Promise<void>;
}

async function drive(node: LiveNode, work: RunWork | undefined, host: NodeHost, { over, limit, begun }: Drive): Promise<NodeEnd> {
  const pendingTask = host.taskOf(node);
  // Nearly all tasks are available synchronously, so that the first runs share the commit.
  const task = typeof pendingTask === 'string' ? pendingTask : await pendingTask;
  // Keeps what summaries cost.
  if (typeof pendingTask !== 'string') await host.save([node]);
  const input: DriverInput = { node: node.spec, work, task, fence: (text, from) => host.fence(text, from, !node.tainted), own: host.own };
  for (;;) {
    const step = nextStep(input, node.done);
    if (step.kind !== 'run') await begun;
    if (step.kind === 'complete')
      return { state: 'completed', output: step.output, partial: node.done.flat().some(({ partial }) => partial === true) };
    if (step.kind === 'fail') {
      const errors = node.done.flat().flatMap(({ ok, error }) => (ok ? [] : [error ?? '']));
      if (over.aborted || errors.some((error) => error === 'killed')) return early(node, work, over.aborted ? 'timeout' : step.error, host);
      return { state: 'failed', error: step.error, canRetry: true };
    }
    const exhausted = over.aborted ? 'timeout' : host.exhausted();
    if (exhausted !== undefined || isTyped(work)) await begun;
    if (exhausted !== undefined) return early(node, work, exhausted, host);
    node.progress = step.progress;
    if (isTyped(work)) {
      host.announce(node);
      host.phase(node, 'progress');
    }
    const at = `${node.attempt}/${node.done.length}`;
    // A retry continues in the conversation of the previous attempt, if there is exactly one.
    const before = isTyped(work) || node.attempt === 1 ? undefined : (node.runId ?? undefined);
    const runs = step.tasks.map((agentTask, index) => runOne(node, agentTask, `${at}/${index}`, before, host, { over, limit, begun }));
    node.done.push(await Promise.all(runs));
    // A single run is followed by the end of the node at once.
    if (isTyped(work)) await host.save([node]);
  }
}

const isTyped = (work: NodeWork | undefined): work is NodeWork & { type: Exclude<GraphNodeType, 'agent'> } =>
  work !== undefined && work.type !== 'agent';

/** Ends a node that may not continue: its partial output counts when it is long enough. */
function early(node: LiveNode, work: RunWork | undefined, error: string, host: NodeHost): NodeEnd {
  const output = partialOutput({ work }, node.done);
  if (output.length > leastPartial) return { state: 'completed', output, partial: true };
  // A timeout of the node alone may succeed on a retry.
  return { state: 'failed', error, canRetry: error === 'timeout' && !host.expired.aborted };
}

async function runOne(
  node: LiveNode,
  agentTask: AgentTask,
  key: string,
  before: string | undefined,
  host: NodeHost,
  { over, limit, begun }: Drive,
): Promise<RunResult> {
  let stopKilling = () => {};
  let resumeTimer = () => 0;
  try {
    const [runId] = await Promise.all([host.start(node, agentTask, key, before), begun]);
    host.halted.throwIfAborted();
    node.runId = runId;
    resumeTimer = host.whileWaiting(runId, limit);
    const kill = () => void host.kill(runId);
    if (over.aborted) kill();
    else over.addEventListener('abort', kill, { once: true });
    stopKilling = () => over.removeEventListener('abort', kill);
    host.announce(node);
    const end = await host.ended(runId);
    node.tokens += end.telemetry?.tokensUsedTotal ?? 0;
    const cost = end.telemetry === undefined ? 0 : end.telemetry.costTotal;
    node.costNano += Math.round((cost ?? 0) * 1e9);
    node.unpriced ||= cost === null;
    node.effectsRefused += end.completion.effectsRefused ?? 0;
    node.tainted ||= end.tainted;
    node.cause = end.cause ?? node.cause;
    return toRunResult(end);
  } catch (error) {
    // A halted graph or a stopping daemon says nothing about the node.
    if (host.halted.aborted || !(error instanceof AppError) || error.code === 'unavailable' || error.code === 'internal') throw error;
    return { ok: false, text: '', error: error.message };
  } finally {
    stopKilling();
    const waitedMs = resumeTimer();
    if (node.deadlineMs !== null) node.deadlineMs += waitedMs;
  }
}

const endedEarly: ReadonlySet<string> = new Set(['killed', 'watchdog_timeout', 'ghost_sweep']);

function toRunResult({ completion, text }: RunEnd): RunResult {
  const { endReason, errorKind } = completion;
  if (endReason === 'completed') return { ok: true, text };
  if (endedEarly.has(endReason) && text.length > leastPartial) return { ok: true, text, partial: true };
  return { ok: false, text, error: endReason === 'failed' ? (errorKind ?? endReason) : endReason };
}

/** Waits; returns early when nothing more may begin. */
async function pause({ clock, halted, cancelled }: NodeHost, ms: number): Promise<void> {
  await sleep(clock, ms, AbortSignal.any([halted, cancelled]));
  halted.throwIfAborted();
}
