import type { CronSchedule as Schedule, CronScheduleRequest as ScheduleRequest } from '@gatehouse/contract';
import { cronRuns, wrongExpression } from './schedule-cron.ts';
import { instantsOf, lastEpochMs, zoneName } from './time-zone.ts';

export interface ScheduleError {
  readonly code:
    | 'invalid_input'
    | 'invalid_timezone'
    | 'invalid_expression'
    | 'conflicting_timezone'
    | 'nonexistent_wall_time'
    | 'ambiguous_wall_time'
    | 'past_schedule'
    | 'unsafe_epoch';
  /** Path of the field within the parameters, such as `schedule.at`. */
  readonly path: string;
  readonly message: string;
}

export type Normalised = { readonly schedule: Schedule } | { readonly error: ScheduleError };

const wallTime = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::[0-5]\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/**
 * Returns the schedule to store for a request made at `nowMs`; absent zones become `defaultZone`. A schedule that would never run is
 * an error.
 */
export function normaliseSchedule(request: ScheduleRequest, now: { readonly nowMs: number; readonly defaultZone: string }): Normalised {
  switch (request.kind) {
    case 'in':
      return wholeAbove(request.seconds, 1)
        ? oneShot(now.nowMs + request.seconds * 1000, now.nowMs, 'seconds')
        : wrong('invalid_input', 'seconds', 'must be a whole number of seconds above 0');
    case 'at':
      return normaliseAt(request, now);
    case 'every':
      return normaliseEvery(request, now.nowMs);
    case 'cron': {
      const tz = zoneName(request.tz ?? now.defaultZone);
      if (tz === undefined) return wrongZone(request.tz ?? now.defaultZone);
      const problem = wrongExpression(request.expr);
      return problem === undefined
        ? { schedule: { kind: 'cron', expr: request.expr, tz } }
        : wrong('invalid_expression', 'expr', `is not a cron expression: ${problem}`);
    }
  }
}

/** Returns the first run strictly after `afterMs`; null when there is none. */
export function nextRun(schedule: Schedule, afterMs: number): number | null {
  return runsAfter(schedule, afterMs).next().value ?? null;
}

/** Returns the first `limit` runs after `fromMs` and up to `toMs`, ascending. */
export function runsBetween(schedule: Schedule, fromMs: number, toMs: number, limit: number): number[] {
  const runs: number[] = [];
  if (limit < 1) return runs;
  for (const runMs of runsAfter(schedule, fromMs)) {
    if (runMs > toMs || runs.push(runMs) >= limit) break;
  }
  return runs;
}

function* runsAfter(schedule: Schedule, afterMs: number): Generator<number, undefined> {
  if (schedule.kind === 'cron') return yield* cronRuns(schedule.expr, schedule.tz, afterMs);
  if (schedule.kind === 'at') {
    if (schedule.atMs > afterMs) yield schedule.atMs;
    return;
  }
  const { everyMs, anchorMs } = schedule;
  // The anchor is the first run; a division would round large numbers.
  let runMs = afterMs < anchorMs ? anchorMs : afterMs - ((afterMs - anchorMs) % everyMs) + everyMs;
  for (; runMs <= lastEpochMs; runMs += everyMs) yield runMs;
}

function normaliseEvery({ everyMs, anchorMs }: ScheduleRequest & { kind: 'every' }, nowMs: number): Normalised {
  if (!wholeAbove(everyMs, 1)) return wrong('invalid_input', 'everyMs', 'must be a whole number of milliseconds above 0');
  const anchor = anchorMs ?? nowMs;
  if (!wholeAbove(anchor, 0)) return wrong('invalid_input', 'anchorMs', 'must be a whole number of milliseconds since 1970');
  const schedule: Schedule = { kind: 'every', everyMs, anchorMs: anchor };
  if (anchor > lastEpochMs) return wrong('unsafe_epoch', 'anchorMs', 'is later than a date can be');
  return nextRun(schedule, nowMs) === null ? wrong('unsafe_epoch', 'everyMs', 'leads to a time later than a date can be') : { schedule };
}

function normaliseAt(
  { at, tz, fold }: ScheduleRequest & { kind: 'at' },
  { nowMs, defaultZone }: { readonly nowMs: number; readonly defaultZone: string },
): Normalised {
  const [, date = '', time = '', offset] = wallTime.exec(at) ?? [];
  const wallMs = epochOf(`${date}T${time}Z`);
  if (wallMs === undefined)
    return wrong('invalid_input', 'at', 'must be a date and time of ISO 8601, such as 2030-01-31T09:30 or 2030-01-31T09:30:00Z');
  if (offset !== undefined) {
    if (tz !== undefined) return wrong('conflicting_timezone', 'tz', 'must be left out when the time has an offset');
    if (fold !== undefined) return wrong('conflicting_timezone', 'fold', 'must be left out when the time has an offset');
    const atMs = epochOf(`${date}T${time}${offset}`);
    return atMs === undefined ? wrong('invalid_input', 'at', 'has an offset that does not exist') : oneShot(atMs, nowMs, 'at');
  }
  const zone = zoneName(tz ?? defaultZone);
  if (zone === undefined) return wrongZone(tz ?? defaultZone);
  const { earlier, later, exists } = instantsOf(wallMs, zone);
  if (!exists) return wrong('nonexistent_wall_time', 'at', `does not exist in ${zone}: clocks skip it when they go forward`);
  if (earlier !== later && fold === undefined)
    return wrong('ambiguous_wall_time', 'fold', `must be earlier or later: the time occurs twice in ${zone} when clocks go back`);
  return oneShot(fold === 'later' ? later : earlier, nowMs, 'at');
}

function oneShot(atMs: number, nowMs: number, field: string): Normalised {
  if (atMs > lastEpochMs) return wrong('unsafe_epoch', field, 'is later than a date can be');
  if (atMs <= nowMs) return wrong('past_schedule', field, 'must lie in the future');
  return { schedule: { kind: 'at', atMs } };
}

/** Parses a timestamp, ignoring fractions of a millisecond. */
function epochOf(text: string): number | undefined {
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch {
    return undefined;
  }
}

const wholeAbove = (value: number, least: number): boolean => Number.isSafeInteger(value) && value >= least;

const wrongZone = (zone: string): Normalised =>
  wrong('invalid_timezone', 'tz', `must be a zone such as Europe/Paris, or an offset such as +05:45; not ${JSON.stringify(zone.slice(0, 64))}`);

function wrong(code: ScheduleError['code'], field: string, message: string): Normalised {
  return { error: { code, path: `schedule.${field}`, message: `schedule.${field} ${message}` } };
}
