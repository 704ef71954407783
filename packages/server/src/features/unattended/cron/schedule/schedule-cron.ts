import { readPattern, type WallPattern } from './schedule-pattern.ts';
import { instantsOf, nextTransition, wallAt, type WallMs } from './time-zone.ts';

const maxExpressionLength = 1024;
const dayMs = 86_400_000;
/** Where the calendar of expressions ends. */
const endMs = Date.UTC(10_000, 0);

/** Why an expression is none, or undefined. One that names no date that exists, such as 30 February, is none either. */
export function wrongExpression(expr: string): string | undefined {
  if (expr.length > maxExpressionLength) return `has more than ${maxExpressionLength} characters`;
  // A date or a nickname is taken by croner too.
  const fields = expr.trim().split(/\s+/).length;
  if ((fields !== 5 && fields !== 6) || /[:@]/.test(expr))
    return 'needs 5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first';
  try {
    return readPattern(expr).next(0) === undefined ? 'names no date that exists' : undefined;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, '') : 'is no cron expression';
  }
}

/**
 * The instants after `afterMs`, ascending, of an expression that was found right. Clocks that are set forward and back are treated as
 * by Vixie cron: an expression that names its times (no `*` and no step in seconds, minutes and hours) runs once for each of them, in a fold at
 * the first pass and in a gap at its end; one that does not follows real time, so that it skips a gap and goes on through both passes of
 * a fold. A day that a zone leaves out whole has no runs.
 */
export function* cronRuns(expr: string, zone: string, afterMs: number): Generator<number, undefined> {
  if (afterMs >= endMs) return;
  const pattern = readPattern(expr);
  yield* pattern.named ? namedTimes(pattern, zone, afterMs) : realTime(pattern, zone, afterMs);
}

/** Each wall time at the first instant that shows it or a later one. */
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

/** The furthest that the clock has shown up to an instant: in the second pass of a fold, what it showed at the end of the first one. */
function furthestWall(epochMs: number, zone: string): WallMs {
  const wall = wallAt(epochMs, zone);
  const { earlier } = instantsOf(wall, zone);
  if (earlier >= epochMs) return wall;
  const setBackMs = nextTransition(earlier, zone);
  // What the clock would have shown at the moment in which it was set back is a time to come.
  return setBackMs === undefined ? wall : Math.max(wall, wallAt(setBackMs - 1, zone));
}

/** Each instant that shows one of the wall times, from one change of the offset to the next. */
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
