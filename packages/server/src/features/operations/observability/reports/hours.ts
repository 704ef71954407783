import type { UsageRange } from '../../../access/budgets/api.ts';

/**
 * Returns the last 24 hours of the clock in a time zone (IANA), each named by its hour of day: from the hour after the current one, yesterday, to the
 * current one. A repeated hour is one range of two hours, a skipped hour is an empty one.
 */
export function hoursOf(nowMs: number, timeZone: string): UsageRange[] {
  const current = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timeZone).toPlainDateTime().round({
    smallestUnit: 'hour',
    roundingMode: 'floor',
  });
  // A skipped time is read as the first one after it, a repeated one as its first occurrence.
  const startOf = (hour: Temporal.PlainDateTime) => firstAtOrAfter(hour, timeZone);
  return Array.from({ length: 24 }, (_, index) => {
    const hour = current.subtract({ hours: 23 - index });
    return { name: String(hour.hour), fromMs: startOf(hour), toMs: startOf(hour.add({ hours: 1 })) };
  });
}

function firstAtOrAfter(time: Temporal.PlainDateTime, timeZone: string): number {
  const zoned = time.toZonedDateTime(timeZone, { disambiguation: 'earlier' });
  if (zoned.toPlainDateTime().equals(time)) return zoned.epochMilliseconds;
  // `earlier` is read with the offset before the change; the change itself is the first moment at or after a skipped time.
  return zoned.getTimeZoneTransition('next')?.epochMilliseconds ?? zoned.epochMilliseconds;
}
