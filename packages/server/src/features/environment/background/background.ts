import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import type { NewTask, TaskAnnouncement } from '../../../runtime/background.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { authorityOf } from '../../../runtime/tool-policy.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { Reenter } from '../../conversations/turns/api.ts';
import type { BackgroundApi } from './api.ts';
import { announcementOf, unknownEnd } from './announcement.ts';
import { addTask, dropTask, endTask, recoverTasks, type TaskRow } from './store.ts';
import { LiveTask, Tasks } from './tasks.ts';
import { type BackgroundMethodDeps, type BackgroundMethods, createBackgroundMethods } from './methods.ts';
import { createBackgroundTool } from './tool.ts';

export interface BackgroundDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** The identity of a token as it is now; undefined when it is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  readonly reenter: Reenter;
  readonly commands: BackgroundMethodDeps['commands'];
}

export interface Background extends AsyncDisposable {
  readonly api: BackgroundApi;
  readonly methods: BackgroundMethods;
  readonly tool: Tool;
  /** Stops results from starting turns; used when the daemon drains. */
  pause(): void;
}

/** Background turns in a chain with no user message between them; beyond it calls stay in their turn. */
const maxChain = 8;
/** Unreported results of one agent. */
const maxUnreported = 64;
/** Results of an earlier process wait until the daemon has started. */
const afterStartMs = 2_000;
const retryMs = 60_000;
const giveUpMs = 24 * 60 * 60_000;

/** Lets tool calls outlive their turns and brings their results back into the conversation (docs/decisions/0017). */
export async function createBackground(deps: BackgroundDeps): Promise<Background> {
  const { db, bus, clock, log } = deps;
  const tasks = new Tasks();
  const stopping = new AbortController();
  /** Conversations in which a background turn is queued or running. */
  const reentering = new Map<string, Promise<void>>();
  let isPaused = false;
  let cancelRetry: (() => void) | undefined;

  for (const row of await db.write(recoverTasks, { atMs: clock.now(), content: unknownEnd })) tasks.add(LiveTask.recovered(row));
  const cancelFirst = tasks.size === 0 ? undefined : clock.after(afterStartMs, reenterAll);

  const running = () => tasks.all().filter(({ state }) => state === 'running');
  const counted = (agentId: string, count = 1) => ({ agentId, count, timestamp: clock.now() });

  function begin(task: NewTask) {
    const { input, call, tool } = task;
    const { agentId, conversationRef, background } = input;
    const mine = tasks.ofAgent(agentId);
    const isFull = mine.running >= input.agent.background.maxRunning || mine.all >= maxUnreported;
    if (isPaused || stopping.signal.aborted || background === undefined || background.chain >= maxChain || isFull) return undefined;
    const row: TaskRow = {
      id: newId('bt'),
      agentId,
      conversationRef,
      sessionKey: input.sessionKey,
      principalId: input.principalId,
      tokenId: input.call.identity.tokenId,
      turnId: input.turnId,
      rootRunId: input.call.agentCaller?.turn?.rootRunId ?? null,
      traceId: input.traceId,
      toolName: tool.name,
      description: task.description,
      begunBy: authorityOf(input),
      chain: background.chain,
      state: 'running',
      outcome: null,
      content: null,
      startedAtMs: task.startedAtMs,
      endedAtMs: null,
    };
    const live = new LiveTask(row, task.stop);
    tasks.add(live);
    const stored = db.write(addTask, { row, ageNowMs: clock.ageNow() });
    void follow(live, stored, task).catch((error: unknown) =>
      log.error({ agentId, taskId: row.id, callId: call.id, error }, 'Lost the result of a background task'),
    );
    return { taskId: row.id, stored };
  }

  async function follow(live: LiveTask, stored: Promise<void>, { end }: NewTask): Promise<void> {
    const { id, agentId, conversationRef } = live.row;
    try {
      await stored;
    } catch (error) {
      tasks.remove(live);
      log.error({ agentId, taskId: id, error }, 'Failed to record a background task; stopping it');
      return;
    }
    bus.emit('background_task:promoted', counted(agentId));
    const { outcome, content } = await end();
    // While the daemon stops, the row stays "running" and the next process reports the task as unknown.
    if (stopping.signal.aborted || !tasks.has(live)) return;
    const atMs = clock.now();
    // Set before the write, so that a cancellation meanwhile comes too late.
    if (live.isCancelled) tasks.remove(live);
    else live.end(outcome, content, atMs);
    const isKept = await db.write(endTask, { id, outcome, content, atMs, state: live.isCancelled ? 'told' : 'ended' }).catch((error: unknown) => {
      log.error({ agentId, taskId: id, error }, 'Failed to persist the result of a background task; delivering it anyway');
      return true;
    });
    bus.emit('background_task:completed', counted(agentId));
    if (!isKept) tasks.remove(live);
    reenterSoon(conversationRef);
  }

  function take(conversationRef: string): TaskAnnouncement | undefined {
    const ended = tasks.ended(conversationRef);
    if (ended.length === 0) return undefined;
    return { taskIds: ended.map(({ row }) => row.id), text: ended.map(takeOne).join('\n\n') };
  }

  function takeOne(live: LiveTask): string {
    live.state = 'taken';
    return announcementOf(live.row, live.wasInterrupted);
  }

  function drop(live: LiveTask): void {
    tasks.remove(live);
    live.stop('nobody is left to receive its result');
    void db.write(dropTask, { id: live.row.id }).catch((error: unknown) => log.error({ taskId: live.row.id, error }, 'Failed to drop a task'));
  }

  function reenterSoon(ref: string): void {
    if (isPaused || stopping.signal.aborted || reentering.has(ref)) return;
    const done = reenter(ref)
      .catch((error: unknown) => log.error({ conversationRef: ref, error }, 'Failed to deliver background results'))
      .finally(() => {
        reentering.delete(ref);
        // A task may have ended since the last check.
        if (cancelRetry === undefined && tasks.ended(ref).length > 0) reenterSoon(ref);
      });
    reentering.set(ref, done);
  }

  function reenterAll(): void {
    for (const ref of tasks.conversations()) if (tasks.ended(ref).length > 0) reenterSoon(ref);
  }

  function retryLater(): void {
    cancelRetry ??= clock.after(retryMs, () => {
      cancelRetry = undefined;
      reenterAll();
    });
  }

  /** Delivers the results that are ready in a conversation, oldest first; each turn also takes those that arrive while it runs. */
  async function reenter(ref: string): Promise<void> {
    for (let [head] = tasks.ended(ref); head !== undefined && !isPaused && !stopping.signal.aborted; [head] = tasks.ended(ref)) {
      const { row } = head;
      const identity = deps.identityOf(row.tokenId);
      const isOld = clock.ageNow() - (row.endedAtMs ?? 0) > giveUpMs;
      if (identity === undefined || deps.agents.find(row.agentId) === undefined || isOld) {
        log.warn({ agentId: row.agentId, taskId: row.id, conversationRef: ref }, 'Dropping the result of a background task: it has no recipient');
        drop(head);
        continue;
      }
      if (!(await deliver(head, identity))) return;
    }
  }

  /** Returns false when the conversation must be retried later. */
  async function deliver(head: LiveTask, identity: Identity): Promise<boolean> {
    const { id, agentId, conversationRef: ref, sessionKey, principalId, traceId, begunBy, chain } = head.row;
    const call: CallContext = { identity, traceId, requestId: newId('rq'), signal: stopping.signal, transport: 'process' };
    try {
      await deps.reenter(
        {
          target: { ref, sessionKey, agentId, principalId },
          begunBy,
          chain: chain + 1,
          rootRunId: rootOf(head.row),
          take: () => (head.state === 'ended' && tasks.has(head) ? { taskIds: [id], text: takeOne(head) } : undefined),
        },
        call,
      );
      if (head.state === 'taken' && tasks.has(head)) {
        tasks.remove(head);
        bus.emit('background_task:reentered', counted(agentId));
      }
      return true;
    } catch (error) {
      if (head.state === 'taken') head.state = 'ended';
      if (error instanceof AppError && (error.code === 'not_found' || error.code === 'denied')) {
        drop(head);
        return true;
      }
      log.warn({ agentId, taskId: id, conversationRef: ref, error }, 'Failed to deliver a background result; retrying later');
      retryLater();
      return false;
    }
  }

  const api: BackgroundApi = {
    begin,
    take,
    isPending: ({ turnId, conversationRef }) =>
      tasks.inConversation(conversationRef).some(({ row, state }) => row.turnId === turnId && state !== 'taken'),
    reported(taskIds) {
      const [first] = taskIds.flatMap((id) => tasks.find(id) ?? []);
      for (const id of taskIds) tasks.removeId(id);
      if (first !== undefined) bus.emit('background_task:notified', counted(first.row.agentId, taskIds.length));
    },
    release(taskIds) {
      for (const id of taskIds) {
        const live = tasks.find(id);
        if (live === undefined) continue;
        live.state = 'ended';
        retryLater();
      }
    },
    forget(conversationRef) {
      for (const live of tasks.inConversation(conversationRef)) {
        tasks.remove(live);
        live.stop('its conversation was reset or deleted');
      }
    },
    dropRoot(rootRunId) {
      const mine = tasks.all().filter(({ row }) => rootRunId === rootOf(row));
      for (const live of mine) drop(live);
      return mine.filter(({ state }) => state === 'running').length;
    },
    forgetAgent(agentId) {
      for (const live of tasks.all()) if (live.row.agentId === agentId) drop(live);
    },
    stopAgent(agentId) {
      for (const live of running()) if (live.row.agentId === agentId) live.stop('its agent was suspended');
    },
    dropToken(tokenId) {
      for (const live of tasks.all()) if (live.row.tokenId === tokenId) drop(live);
    },
    rootTurn(rootRunId) {
      const row = running().find((live) => rootOf(live.row) === rootRunId)?.row;
      return row === undefined ? undefined : { ...row, origin: row.begunBy };
    },
  };

  return {
    api,
    methods: createBackgroundMethods({ ...deps, tasks }),
    tool: createBackgroundTool({ db, clock, tasks }),
    pause() {
      isPaused = true;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new AppError('unavailable', 'The daemon is stopping'));
      cancelFirst?.();
      cancelRetry?.();
      for (const live of tasks.all()) live.stop('the daemon is stopping');
      await Promise.all(reentering.values());
    },
  };
}

const rootOf = ({ rootRunId, turnId }: TaskRow): string => rootRunId ?? `root-turn-${turnId}`;
