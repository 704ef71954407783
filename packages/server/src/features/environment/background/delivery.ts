import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext, Identity, IdentityOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import { sleep } from '../../../kernel/timers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { Reenter } from '../../conversations/turns/api.ts';
import { dropTask } from './store.ts';
import { type LiveTask, rootOf, type Tasks } from './tasks.ts';

export interface DeliveryDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** The identity of a token as it is now; undefined when it is gone. */
  readonly identityOf: IdentityOf;
  readonly reenter: Reenter;
  readonly tasks: Tasks;
}

/** Results of an earlier process wait until the daemon has started. */
const afterStartMs = 2_000;
const retryMs = 60_000;
const giveUpMs = 24 * 60 * 60_000;

/** Brings the results of tasks back into their conversations, by separate turns. */
export class Delivery implements AsyncDisposable {
  readonly #deps: DeliveryDeps;
  readonly #stopping = new AbortController();
  /** Conversations in which a background turn is queued or running. */
  readonly #reentering = new Map<string, Promise<void>>();
  #isPaused = false;
  /** Set while failed deliveries wait for their retry. */
  #retrying: Promise<void> | undefined;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    if (deps.tasks.size > 0) void sleep(deps.clock, afterStartMs, this.stopping).then(() => this.deliverAll());
  }

  /** True once no result may start a turn any more. */
  get isStopped(): boolean {
    return this.#isPaused || this.#stopping.signal.aborted;
  }

  /** Aborted when the daemon stops. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Delivers the results that are ready in a conversation, unless that is being done already. */
  deliver(ref: string): void {
    if (this.isStopped || this.#reentering.has(ref)) return;
    const { log, tasks } = this.#deps;
    const done = this.#reenter(ref)
      .catch((error: unknown) => log.error({ conversationRef: ref, error }, 'Failed to deliver background results'))
      .finally(() => {
        this.#reentering.delete(ref);
        // A task may have ended since the last check.
        if (this.#retrying === undefined && tasks.ended(ref).length > 0) this.deliver(ref);
      });
    this.#reentering.set(ref, done);
  }

  retryLater(): void {
    this.#retrying ??= sleep(this.#deps.clock, retryMs, this.stopping).then(() => {
      this.#retrying = undefined;
      this.deliverAll();
    });
  }

  /** Drops a task that nobody waits for. */
  drop(live: LiveTask): void {
    const { db, log, tasks } = this.#deps;
    const { id } = live.row;
    tasks.remove(live);
    live.stop('nobody is left to receive its result');
    void db.write(dropTask, { id }).catch((error: unknown) => log.error({ taskId: id, error }, 'Failed to drop a task'));
  }

  /** Stops all turns of results. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new AppError('unavailable', 'The daemon is stopping'));
    for (const live of this.#deps.tasks.all()) live.stop('the daemon is stopping');
    await Promise.all(this.#reentering.values());
  }

  /** Delivers the results that are ready in all conversations. */
  deliverAll(): void {
    const { tasks } = this.#deps;
    for (const ref of tasks.conversations()) if (tasks.ended(ref).length > 0) this.deliver(ref);
  }

  /** Delivers results, oldest first; each turn also takes those that arrive while it runs. */
  async #reenter(ref: string): Promise<void> {
    const { clock, log, agents, identityOf, tasks } = this.#deps;
    for (let [head] = tasks.ended(ref); head !== undefined && !this.isStopped; [head] = tasks.ended(ref)) {
      const { id: taskId, agentId, principalId, tokenId, endedAtMs } = head.row;
      const identity = identityOf(tokenId, principalId);
      const isOld = clock.ageNow() - (endedAtMs ?? 0) > giveUpMs;
      if (identity === undefined || agents.find(agentId) === undefined || isOld) {
        log.warn({ agentId, taskId, conversationRef: ref }, 'Dropping the result of a background task: it has no recipient');
        this.drop(head);
        continue;
      }
      if (!(await this.#runTurn(head, identity))) return;
    }
  }

  /** Returns false when the conversation must be retried later. */
  async #runTurn(head: LiveTask, identity: Identity): Promise<boolean> {
    const { bus, clock, log, tasks } = this.#deps;
    const { id, agentId, conversationRef: ref, sessionKey, principalId, traceId, begunBy, chain } = head.row;
    const call: CallContext = { identity, traceId, requestId: newId('rq'), signal: this.#stopping.signal, transport: 'process' };
    try {
      await this.#deps.reenter(
        {
          target: { ref, sessionKey, agentId, principalId },
          begunBy,
          chain: chain + 1,
          rootRunId: rootOf(head.row),
          take: () => (head.state === 'ended' && tasks.has(head) ? { taskIds: [id], text: head.take() } : undefined),
        },
        call,
      );
      if (head.state === 'taken' && tasks.has(head)) {
        tasks.remove(head);
        bus.emit('background_task:reentered', { agentId, count: 1, timestamp: clock.now() });
      }
      return true;
    } catch (error) {
      if (head.state === 'taken') head.state = 'ended';
      if (error instanceof AppError && (error.code === 'not_found' || error.code === 'denied')) {
        this.drop(head);
        return true;
      }
      log.warn({ agentId, taskId: id, conversationRef: ref, error }, 'Failed to deliver a background result; retrying later');
      this.retryLater();
      return false;
    }
  }
}
