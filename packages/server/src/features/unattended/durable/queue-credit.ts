import type { Db } from '../../../kernel/db/db.ts';
import { countWaiting, maxWaiting } from './store.ts';

/** Intakes that one count allows: others may accept work of the same kind meanwhile. */
const most = 1_000;
/** The next count begins before the last intake is used up. */
const low = 100;

interface Credit {
  left: number;
  isCounting: boolean;
  /** Intakes since the count began. */
  since: number;
}

/**
 * Knows whether one more item fits in the queue of its kind, so that its intake need not look for the last place, which takes the longer the
 * more is queued. The queue may exceed its limit by what other daemons accept between two counts.
 */
export class QueueCredit {
  readonly #db: Db;
  readonly #credits = new Map<string, Credit>();

  constructor(db: Db) {
    this.#db = db;
  }

  /** Returns false when the intake has to look itself. */
  take(kind: string): boolean {
    let credit = this.#credits.get(kind);
    if (credit === undefined) this.#credits.set(kind, (credit = { left: 0, isCounting: false, since: 0 }));
    if (credit.left < low && !credit.isCounting) void this.#count(kind, credit);
    credit.since += 1;
    if (credit.left === 0) return false;
    credit.left -= 1;
    return true;
  }

  async #count(kind: string, credit: Credit): Promise<void> {
    credit.isCounting = true;
    credit.since = 0;
    try {
      // As a write, it sees every intake that was requested before it.
      const queued = await this.#db.write(countWaiting, { kind });
      credit.left = Math.max(0, Math.min(most, maxWaiting - queued) - credit.since);
    } catch {
      // The intakes look themselves, and report what is wrong with the storage.
    } finally {
      credit.isCounting = false;
    }
  }
}
