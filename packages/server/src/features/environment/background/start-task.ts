import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import type { TracedWork, TraceWork } from '../../../kernel/work-trace.ts';
import type { BackgroundTasks, NewTask, TaskOutcome } from '../../../runtime/background.ts';
import { authorityOf } from '../../../runtime/tool-policy.ts';
import type { Delivery } from './delivery.ts';
import { addTask, endTask, type TaskRow } from './store.ts';
import { LiveTask, type Tasks } from './tasks.ts';

export interface StartTaskDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
  readonly bootId: string;
  readonly tasks: Tasks;
  readonly delivery: Pick<Delivery, 'deliver' | 'isStopped' | 'stopping'>;
}

/** Background turns in a chain with no user message between them; beyond it calls stay in their turn. */
const maxChain = 8;
/** Unreported results of one agent. */
const maxUnreported = 64;

/** Starts a task for a call that outlives its turn; see `BackgroundTasks.begin`. */
export function startTask(deps: StartTaskDeps, task: NewTask): ReturnType<BackgroundTasks['begin']> {
  const { db, clock, log, tasks, delivery } = deps;
  const { agentId, agent, background } = task.input;
  const mine = tasks.ofAgent(agentId);
  const isFull = mine.running >= agent.background.maxRunning || mine.all >= maxUnreported;
  if (delivery.isStopped || background === undefined || background.chain >= maxChain || isFull) return undefined;
  const row = { ...rowOf(task, background.chain), bootId: deps.bootId };
  const live = new LiveTask(row, task.stop);
  tasks.add(live);
  const stored = db.write(addTask, { row, ageNowMs: clock.ageNow() });
  void follow(deps, live, { ...task, stored }).catch((error: unknown) =>
    log.error({ agentId, taskId: row.id, callId: task.call.id, error }, 'Lost the result of a background task'),
  );
  return { taskId: row.id, stored };
}

function rowOf({ input, tool, description, startedAtMs }: NewTask, chain: number): Omit<TaskRow, 'bootId'> {
  return {
    id: newId('bt'),
    agentId: input.agentId,
    conversationRef: input.conversationRef,
    sessionKey: input.sessionKey,
    principalId: input.principalId,
    tokenId: input.call.identity.tokenId,
    turnId: input.turnId,
    rootRunId: input.call.agentCaller?.turn?.rootRunId ?? null,
    traceId: input.traceId,
    toolName: tool.name,
    description,
    begunBy: authorityOf(input),
    chain,
    state: 'running',
    outcome: null,
    content: null,
    startedAtMs,
    endedAtMs: null,
  };
}

/** Waits for the end of a task, and stores and delivers its result. */
async function follow(
  { db, bus, clock, log, traceWork, tasks, delivery }: StartTaskDeps,
  live: LiveTask,
  { stored, end }: { readonly stored: Promise<void>; readonly end: NewTask['end'] },
): Promise<void> {
  const { id, agentId, conversationRef } = live.row;
  const counted = () => ({ agentId, count: 1, timestamp: clock.now() });
  try {
    await stored;
  } catch (error) {
    tasks.remove(live);
    log.error({ agentId, taskId: id, error }, 'Failed to record a background task; stopping it');
    return;
  }
  bus.emit('background_task:promoted', counted());
  const { outcome, content } = await end();
  // While the daemon stops, the row stays "running" and the next process reports the task as unknown.
  if (delivery.stopping.aborted || !tasks.has(live)) return;
  const atMs = clock.now();
  // Set before the write, so that a cancellation meanwhile comes too late.
  if (live.isCancelled) tasks.remove(live);
  else live.end(outcome, content, atMs);
  const isKept = await db.write(endTask, { id, outcome, content, atMs, state: live.isCancelled ? 'told' : 'ended' }).catch((error: unknown) => {
    log.error({ agentId, taskId: id, error }, 'Failed to persist the result of a background task; delivering it anyway');
    return true;
  });
  bus.emit('background_task:completed', counted());
  traceWork(toTrace(live.row, live.isCancelled ? 'cancelled' : outcome, atMs));
  if (!isKept) tasks.remove(live);
  delivery.deliver(conversationRef);
}

function toTrace(row: TaskRow, outcome: TaskOutcome, endedAtMs: number): TracedWork {
  const { id, agentId, principalId, conversationRef, sessionKey, turnId, rootRunId, traceId, toolName, startedAtMs } = row;
  const isFailed = outcome !== 'ok' && outcome !== 'cancelled';
  return {
    kind: 'background',
    traceId,
    ...(rootRunId !== null && { rootRunId }),
    parentId: turnId,
    agentId,
    principalId,
    conversationRef,
    sessionKey,
    origin: row.begunBy,
    startedAtMs,
    endedAtMs,
    outcome: outcome === 'ok' ? 'ok' : isFailed ? 'failed' : 'cancelled',
    endReason: outcome,
    error: isFailed ? { kind: outcome === 'error' ? 'tool_error' : outcome } : null,
    toolCalls: 1,
    toolErrors: isFailed ? 1 : 0,
    refs: { taskId: id },
    facts: { tool: toolName },
  };
}
