import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
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
  const known = await db.read(readKnownTime, {});
  let atMs = known?.atMs ?? clock.now();
  let doubtedMs = known?.doubtedMs ?? 0;
  let lookedAtMs = clock.monotonic();
  let isReported = false;
  let keeping: Promise<void> = Promise.resolve();
  let cancel = later();

  /** How far the clock is off, when that is too far to be trusted. */
  function look(): number | undefined {
    const ranMs = clock.monotonic() - lookedAtMs;
    lookedAtMs += ranMs;
    atMs += ranMs;
    const offMs = clock.now() - atMs;
    const isOff = Math.abs(offMs) > leapMs;
    doubtedMs = isOff ? doubtedMs + ranMs : 0;
    if (isOff && doubtedMs < believedAfterMs) return offMs;
    atMs = clock.now();
    doubtedMs = 0;
    return undefined;
  }

  function doubt(): string | undefined {
    const offMs = look();
    if (offMs === undefined) return undefined;
    const shown = (ms: number) => Temporal.Instant.fromEpochMilliseconds(Math.floor(ms)).toString({ smallestUnit: 'minute' });
    const days = Math.floor(Math.abs(offMs) / dayMs);
    return (
      `The clock shows ${shown(clock.now())}, ${days === 1 ? '1 day' : `${days} days`} ${offMs > 0 ? 'later' : 'earlier'} than expected from when the daemon last ran ` +
      `(${shown(atMs)}). Nothing is deleted by age until the clock is right or the daemon has run for three days. If it is wrong, set it, and restart the daemon`
    );
  }

  function report(): void {
    const doubted = doubt();
    if (doubted !== undefined && !isReported) log.warn({}, doubted);
    if (doubted === undefined && isReported) log.info({}, 'Trusting the clock again: ages are counted by it');
    isReported = doubted !== undefined;
  }

  async function keep(): Promise<void> {
    report();
    try {
      await db.write(keepKnownTime, { atMs: Math.floor(atMs), doubtedMs: Math.floor(doubtedMs) });
    } catch (error) {
      log.warn({ err: error }, 'Failed to store the time for ages');
    }
  }

  function later(): () => void {
    return clock.after(hourMs, () => {
      keeping = keep();
      cancel = later();
    });
  }

  report();
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, run) => clock.after(ms, run),
    ageNow() {
      look();
      return Math.floor(Math.min(atMs, clock.now()));
    },
    doubt,
    async [Symbol.asyncDispose]() {
      cancel();
      await keeping;
      await keep();
    },
  };
}
