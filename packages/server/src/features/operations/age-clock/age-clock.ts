import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import { keepKnownTime, readKnownTime } from './store.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** The clock is doubted beyond this difference: a machine that was off for a week is normal. */
const leapMs = 7 * dayMs;
/** Running time after which a doubted clock is trusted: longer than an unattended weekend. */
const believedAfterMs = 3 * dayMs;

export interface AgeClock extends Clock, AsyncDisposable {
  /** Returns why the clock is not trusted, in a sentence for its owner; undefined when it is. */
  doubt(): string | undefined;
}

/**
 * The clock with the time for ages (docs/decisions/0042). That time follows the clock, except when the clock is more
 * than a week away from the time last known plus the time run since: then it advances with the running time alone, until the
 * clock is right again or the daemon has run for three days. It is never later than the clock.
 */
export async function createAgeClock({ db, clock, log }: { readonly db: Db; readonly clock: Clock; readonly log: Log }): Promise<AgeClock> {
  const known = new KnownTime(clock, await db.read(readKnownTime, {}));
  let isReported = false;

  function report(): void {
    const doubted = known.doubt();
    if (doubted !== undefined && !isReported) log.warn({}, doubted);
    if (doubted === undefined && isReported) log.info({}, 'Trusting the clock again: ages are counted by it');
    isReported = doubted !== undefined;
  }

  async function keep(): Promise<void> {
    report();
    await db.write(keepKnownTime, known.stored());
  }

  const warnUnkept = (error: unknown) => log.warn({ err: error }, 'Failed to store the time for ages');
  report();
  const keeping = repeat({ clock, everyMs: hourMs, run: keep, onError: warnUnkept });
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, run) => clock.after(ms, run),
    ageNow: () => known.ageNow(),
    doubt: () => known.doubt(),
    async [Symbol.asyncDispose]() {
      await keeping[Symbol.asyncDispose]();
      await keep().catch(warnUnkept);
    },
  };
}

/** The time last known, continued by the running time while the clock is doubted. */
class KnownTime {
  readonly #clock: Clock;
  #atMs: number;
  /** Running time since the clock is doubted. */
  #doubtedMs: number;
  #checkedAtMs: number;

  constructor(clock: Clock, stored: { readonly atMs: number; readonly doubtedMs: number } | undefined) {
    this.#clock = clock;
    this.#atMs = stored?.atMs ?? clock.now();
    this.#doubtedMs = stored?.doubtedMs ?? 0;
    this.#checkedAtMs = clock.monotonic();
  }

  ageNow(): number {
    this.#check();
    return Math.floor(Math.min(this.#atMs, this.#clock.now()));
  }

  stored(): { readonly atMs: number; readonly doubtedMs: number } {
    return { atMs: Math.floor(this.#atMs), doubtedMs: Math.floor(this.#doubtedMs) };
  }

  doubt(): string | undefined {
    const offMs = this.#check();
    if (offMs === undefined) return undefined;
    const shown = (ms: number) => Temporal.Instant.fromEpochMilliseconds(Math.floor(ms)).toString({ smallestUnit: 'minute' });
    const days = Math.floor(Math.abs(offMs) / dayMs);
    return (
      `The clock shows ${shown(this.#clock.now())}, ${days === 1 ? '1 day' : `${days} days`} ${offMs > 0 ? 'later' : 'earlier'} than expected from when the daemon last ran ` +
      `(${shown(this.#atMs)}). Nothing is deleted by age until the clock is right or the daemon has run for three days. If it is wrong, set it, and restart the daemon`
    );
  }

  /** Returns how far the clock is off, when that is too far to be trusted. */
  #check(): number | undefined {
    const ranMs = this.#clock.monotonic() - this.#checkedAtMs;
    this.#checkedAtMs += ranMs;
    this.#atMs += ranMs;
    const offMs = this.#clock.now() - this.#atMs;
    const isOff = Math.abs(offMs) > leapMs;
    this.#doubtedMs = isOff ? this.#doubtedMs + ranMs : 0;
    if (isOff && this.#doubtedMs < believedAfterMs) return offMs;
    this.#atMs = this.#clock.now();
    this.#doubtedMs = 0;
    return undefined;
  }
}
