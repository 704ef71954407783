import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import { repeat } from '../../../../kernel/timers.ts';
import { rollUp, usageReport } from '../store.ts';

const everyMs = 3_600_000;
const dayMs = 86_400_000;
const rollUpMs = 300_000;
/** Few enough not to block the writer for longer than a turn's own write. */
const rollUpBatch = 250;
const rollUpPauseMs = 20;

export interface BillingDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
}

/** Maintains the slots of `usage.report`, and reports the spend once an hour; idle while no calls are made. */
export class Billing implements AsyncDisposable {
  readonly #deps: BillingDeps;
  #callsSinceRollUp = 0;
  #callsSinceSnapshot = 0;
  readonly #reporting: AsyncDisposable;
  readonly #rollingUp: AsyncDisposable;
  #work: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(deps: BillingDeps) {
    this.#deps = deps;
    // The first run includes calls from earlier processes.
    this.#callsSinceRollUp = 1;
    const { clock, log } = deps;
    this.#rollingUp = repeat({
      clock,
      everyMs: rollUpMs,
      run: () => this.#rollUp(),
      onError: (error) => log.error({ err: error }, 'Failed to sum up model calls'),
    });
    this.#reporting = repeat({
      clock,
      everyMs,
      run: () => this.#onHour(),
      onError: (error) => log.error({ err: error }, 'Failed to report the spend of the last day'),
    });
  }

  /** Called after each model call. */
  count(): void {
    this.#callsSinceRollUp += 1;
    this.#callsSinceSnapshot += 1;
  }

  /** Announces the last 24 hours by provider; never fails. */
  announce(): void {
    const { db, bus, clock, log } = this.#deps;
    if (this.#isOver || !bus.wants('diagnostic:billing_snapshot')) return;
    this.#then(async () => {
      const toMs = clock.now() + 1;
      const asked = {
        ranges: [{ name: '', fromMs: toMs - dayMs, toMs }],
        groupBy: ['provider'] as const,
        principalId: null,
        agentIds: null,
        limit: 1000,
      };
      const { rows, totals } = await db.read(usageReport, asked);
      bus.emit('diagnostic:billing_snapshot', {
        providers: rows.map((row) => ({
          provider: row.key1 ?? '',
          totalCost: row.costNano / 1e9,
          totalTokens: row.inputTokens + row.outputTokens,
          callCount: row.calls,
        })),
        totalCost: totals.costNano / 1e9,
        timestamp: clock.now(),
      });
    }).catch((error: unknown) => log.error({ err: error }, 'Failed to report the spend of the last day'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#reporting[Symbol.asyncDispose]();
    await this.#rollingUp[Symbol.asyncDispose]();
    await this.#work.catch(() => undefined);
  }

  #onHour(): void {
    if (this.#callsSinceSnapshot > 0) this.announce();
    this.#callsSinceSnapshot = 0;
  }

  /** Sums up a batch. Returns the milliseconds until the next one when there is more. */
  async #rollUp(): Promise<number | undefined> {
    if (this.#callsSinceRollUp === 0) return undefined;
    this.#callsSinceRollUp = 0;
    let hasMore = true;
    try {
      await this.#then(async () => {
        hasMore = await this.#deps.db.write(rollUp, { limit: rollUpBatch });
      });
      return hasMore ? rollUpPauseMs : undefined;
    } finally {
      if (hasMore) this.#callsSinceRollUp += 1;
    }
  }

  #then(work: () => Promise<void>): Promise<void> {
    return (this.#work = this.#work.catch(() => undefined).then(work));
  }
}
