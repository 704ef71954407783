import type { AgentHeartbeat } from '@gatehouse/contract';

export type ActiveHours = NonNullable<AgentHeartbeat['activeHours']>;

const minuteOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

const zoned = ({ timeZone = 'UTC' }: ActiveHours, atMs: number) => Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone);

/** Returns whether beats by the interval may run at a time; hours that end before they start span midnight. */
export function isActive(hours: ActiveHours, atMs: number): boolean {
  const { hour, minute } = zoned(hours, atMs);
  const now = hour * 60 + minute;
  const start = minuteOf(hours.start);
  const end = minuteOf(hours.end);
  return start < end ? start <= now && now < end : now >= start || now < end;
}

/** Returns the time itself when beats may run then, else the start of the next active hours. */
export function nextActive(hours: ActiveHours, atMs: number): number {
  if (isActive(hours, atMs)) return atMs;
  const start = minuteOf(hours.start);
  const now = zoned(hours, atMs);
  const time = { hour: Math.floor(start / 60), minute: start % 60, second: 0, millisecond: 0, microsecond: 0, nanosecond: 0 };
  const today = now.with(time);
  const next = today.epochMilliseconds > atMs ? today : now.add({ days: 1 }).with(time);
  return next.epochMilliseconds;
}
