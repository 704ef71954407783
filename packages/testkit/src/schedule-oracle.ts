/**
 * Finds when jobs run by brute force: asks a zone for its offset minute by minute where that changes and examines every day and minute in turn.
 * Slow, and shares nothing with the scheduler but the data of the zones.
 */

const minuteMs = 60_000;
const dayMinutes = 1440;
const horizonDays = 45 * 366;

/** A cron expression as sets, with its text. */
export interface Pattern {
  readonly text: string;
  readonly seconds: readonly number[];
  hour(value: number): boolean;
  minute(value: number): boolean;
  /** Whether a calendar day is one of its days. */
  day(year: number, month: number, day: number): boolean;
  /** True when no time field has a star or a step: it then names its times. */
  readonly named: boolean;
}

/** Offsets in minutes for each minute of a day of UTC, by zone and day. */
const offsets = new Map<string, Map<number, Int16Array>>();
let last: { readonly zone: string; readonly days: Map<number, Int16Array> } | undefined;

function offsetsOf(zone: string, utcDay: number): Int16Array {
  if (last?.zone !== zone) {
    const days = offsets.get(zone) ?? new Map<number, Int16Array>();
    offsets.set(zone, days);
    last = { zone, days };
  }
  const known = last.days.get(utcDay);
  if (known !== undefined) return known;
  const first = utcDay * dayMinutes;
  const table = new Int16Array(dayMinutes);
  let ends = offsetAt(zone, first);
  for (let hour = 0; hour < dayMinutes; hour += 60) {
    const begins = ends;
    ends = offsetAt(zone, first + hour + 60);
    for (let minute = hour; minute < hour + 60; minute += 1) table[minute] = begins === ends ? begins : offsetAt(zone, first + minute);
  }
  last.days.set(utcDay, table);
  return table;
}

function offsetAt(zone: string, utcMinute: number): number {
  return Temporal.Instant.fromEpochMilliseconds(utcMinute * minuteMs).toZonedDateTimeISO(zone).offsetNanoseconds / (minuteMs * 1_000_000);
}

/** Returns what the clock shows, in minutes since the epoch of that calendar. */
function wallOf(zone: string, utcMinute: number): number {
  const utcDay = Math.floor(utcMinute / dayMinutes);
  return utcMinute + (offsetsOf(zone, utcDay)[utcMinute - utcDay * dayMinutes] ?? 0);
}

/** Returns all instants whose clock shows a wall time, given in minutes. */
export function instantsShowing(zone: string, wallMinute: number): number[] {
  const found: number[] = [];
  for (let minute = wallMinute - 16 * 60; minute <= wallMinute + 16 * 60; minute += 1)
    if (wallOf(zone, minute) === wallMinute) found.push(minute * minuteMs);
  return found;
}

/** Returns the first `count` runs after `afterMs`, within 45 years. */
export function runsOf(pattern: Pattern, zone: string, afterMs: number, count: number): number[] {
  return pattern.named ? namedRuns(pattern, zone, afterMs, count) : realRuns(pattern, zone, afterMs, count);
}

/** Tries every minute of every possible day. */
function realRuns(pattern: Pattern, zone: string, afterMs: number, count: number): number[] {
  const runs: number[] = [];
  const firstDay = Math.floor(afterMs / minuteMs / dayMinutes);
  for (let utcDay = firstDay; utcDay < firstDay + horizonDays && runs.length < count; utcDay += 1) {
    if (!isDay(pattern, utcDay - 1) && !isDay(pattern, utcDay) && !isDay(pattern, utcDay + 1)) continue;
    for (let minute = utcDay * dayMinutes; minute < (utcDay + 1) * dayMinutes; minute += 1) {
      const wall = wallOf(zone, minute);
      const wallDay = Math.floor(wall / dayMinutes);
      const time = wall - wallDay * dayMinutes;
      if (
        (minute + 1) * minuteMs <= afterMs ||
        runs.length === count ||
        !pattern.minute(time % 60) ||
        !pattern.hour(Math.floor(time / 60)) ||
        !isDay(pattern, wallDay)
      )
        continue;
      for (const second of pattern.seconds) {
        const runMs = minute * minuteMs + second * 1000;
        if (runMs > afterMs && runs.length < count) runs.push(runMs);
      }
    }
  }
  return runs;
}

/** Returns, for each named time on each matching day, the first moment at which the clock shows it, or has passed it. */
function namedRuns(pattern: Pattern, zone: string, afterMs: number, count: number): number[] {
  const runs: number[] = [];
  const firstDay = Math.floor(afterMs / minuteMs / dayMinutes) - 2;
  for (let day = firstDay; day < firstDay + horizonDays && runs.length < count; day += 1) {
    if (!isDay(pattern, day) || instantsOnDay(zone, day) === 0) continue;
    for (let time = 0; time < dayMinutes; time += 1) {
      if (!pattern.hour(Math.floor(time / 60)) || !pattern.minute(time % 60)) continue;
      const wall = day * dayMinutes + time;
      let minute = wall - 16 * 60;
      while (wallOf(zone, minute) < wall) minute += 1;
      const inGap = wallOf(zone, minute) !== wall;
      for (const second of inGap ? [0] : pattern.seconds) {
        const runMs = minute * minuteMs + second * 1000;
        if (runMs > afterMs && runMs > (runs.at(-1) ?? -1) && runs.length < count) runs.push(runMs);
      }
    }
  }
  return runs;
}

/** Returns the number of hours in a calendar day of a zone. */
function instantsOnDay(zone: string, day: number): number {
  let found = 0;
  for (let hour = -16; hour < 40; hour += 1) if (Math.floor(wallOf(zone, day * dayMinutes + hour * 60) / dayMinutes) === day) found += 1;
  return found;
}

function isDay(pattern: Pattern, day: number): boolean {
  let date = dates[day];
  if (date === undefined) {
    const at = new Date(day * dayMinutes * minuteMs);
    date = [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()];
    dates[day] = date;
  }
  return pattern.day(...date);
}

/** Cache of year, month and day by day since the epoch. */
const dates: (readonly [number, number, number])[] = [];

/** Returns a moment within each offset change of a zone between two years, found by checking every third day. */
export function changesOf(zone: string, fromYear: number, toYear: number): number[] {
  const changes: number[] = [];
  const lastDay = Date.UTC(toYear, 0, 1) / minuteMs / dayMinutes;
  let before: number | undefined;
  for (let day = Date.UTC(fromYear, 0, 1) / minuteMs / dayMinutes; day < lastDay; day += 3) {
    const offset = offsetAt(zone, day * dayMinutes);
    if (before !== undefined && offset !== before) {
      let minute = (day - 3) * dayMinutes;
      // By hours, then by minutes of the hour before: reading an offset takes microseconds.
      while (offsetAt(zone, minute + 60) === before) minute += 60;
      while (offsetAt(zone, minute) === before) minute += 1;
      changes.push(minute * minuteMs);
    }
    before = offset;
  }
  return changes;
}
