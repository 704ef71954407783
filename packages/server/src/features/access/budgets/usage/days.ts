import type { UsageRange } from '../store.ts';

/** Returns the days of a time zone (IANA) that `[fromMs, toMs)` overlaps, the first and the last clipped; a day may have 23 or 25 hours. */
export function daysOf(fromMs: number, toMs: number, timeZone: string): UsageRange[] {
  const days: UsageRange[] = [];
  let day = Temporal.Instant.fromEpochMilliseconds(fromMs).toZonedDateTimeISO(timeZone).startOfDay();
  while (day.epochMilliseconds < toMs) {
    const next = day.add({ days: 1 }).startOfDay();
    days.push({
      name: day.toPlainDate().toString(),
      fromMs: Math.max(fromMs, day.epochMilliseconds),
      toMs: Math.min(toMs, next.epochMilliseconds),
    });
    day = next;
  }
  return days;
}
