import { readPattern, type WallPattern } from './schedule-pattern.ts';
import { instantsOf, nextTransition, wallAt, type WallMs } from './time-zone.ts';

const maxExpressionLength = 1024;
const dayMs = 86_400_000;
/** End of the calendar of expressions. */
const endMs = Date.UTC(10_000, 0);

/** Returns why an expression is invalid, or undefined. One that matches no existing date, such as 30 February, is invalid too. */
export function wrongExpression(expr: string): string | undefined {
  if (expr.length > maxExpressionLength) return `has more than ${maxExpressionLength} characters`;
  // Croner also accepts a date or a nickname.
  const fields = expr.trim().split(/\s+/).length;
  if ((fields !== 5 && fields !== 6) || /[:@]/.test(expr))
    return 'needs 5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first';
  try {
    return readPattern(expr).next(0) === undefined ? 'matches no existing date' : undefined;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, '') : 'is not a cron expression';
  }
}

/**
 * Yields the instants after `afterMs` of a valid expression, ascending. Handles DST changes like Vixie cron: an expression with
 * fixed times (no `*` and no step in seconds, minutes and hours) runs once for each of them, in a fold at
 * the first pass and in a gap at its end; any other expression follows real time, so it skips a gap and runs through both passes of
 * a fold. A day that a zone skips entirely has no runs.
 */
export function* cronRuns(expr: string, zone: string, afterMs: number): Generator<number, undefined> {
  if (afterMs >= endMs) return;
  const pattern = readPattern(expr);
  yield* pattern.named ? namedTimes(pattern, zone, afterMs) : realTime(pattern, zone, afterMs);
}

/** Yields, for each wall time, the first instant at which the clock shows it or a later time. */
function* namedTimes(pattern: WallPattern, zone: string, afterMs: number): Generator<number, undefined> {
  let reachedMs = afterMs;
  let wall: WallMs | undefined = furthestWall(afterMs, zone);
  while ((wall = pattern.next(wall)) !== undefined) {
    const { earlier, later, exists } = instantsOf(wall, zone);
    let runMs = earlier;
    if (!exists) {
      if (later - earlier >= dayMs) continue;
      runMs = nextTransition(earlier, zone) ?? later;
    }
    if (runMs <= reachedMs) continue;
    reachedMs = runMs;
    yield runMs;
  }
}

/** Returns the latest wall time shown up to an instant: in the second pass of a fold, the time at the end of the first pass. */
function furthestWall(epochMs: number, zone: string): WallMs {
  const wall = wallAt(epochMs, zone);
  const { earlier } = instantsOf(wall, zone);
  if (earlier >= epochMs) return wall;
  const setBackMs = nextTransition(earlier, zone);
  // The wall time at the very moment of the change has not been shown yet.
  return setBackMs === undefined ? wall : Math.max(wall, wallAt(setBackMs - 1, zone));
}

/** Yields each instant that shows one of the wall times, one offset period after another. */
function* realTime(pattern: WallPattern, zone: string, afterMs: number): Generator<number, undefined> {
  let fromMs = afterMs + 1;
  while (fromMs < endMs) {
    const offsetMs = wallAt(fromMs, zone) - fromMs;
    const changeMs = nextTransition(fromMs, zone) ?? endMs;
    let wall: WallMs | undefined = fromMs - 1 + offsetMs;
    while ((wall = pattern.next(wall)) !== undefined && wall - offsetMs < changeMs) yield wall - offsetMs;
    if (wall === undefined) return;
    fromMs = changeMs;
  }
}
