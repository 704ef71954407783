import type { AgentNotification, NotificationPriority } from '@gatehouse/contract';

/** Hours of the day in a zone, as those of heartbeats. */
export interface DayHours {
  readonly start: string;
  readonly end: string;
  readonly timeZone?: string | undefined;
}

/** Returns the time itself when it lies within the hours, else their next start. */
export type NextWithin = (hours: DayHours, atMs: number) => number;

/** Returns the end of the quiet hours that keep a notification back; undefined when it may be sent. */
export function quietUntil(
  { quietHours }: Pick<AgentNotification, 'quietHours'>,
  priority: NotificationPriority,
  atMs: number,
  nextWithin: NextWithin,
): number | undefined {
  if (quietHours === undefined || (priority === 'critical' && quietHours.criticalBypass)) return undefined;
  const { start, end, timeZone } = quietHours;
  // The other hours of the day.
  const untilMs = nextWithin({ start: end, end: start, timeZone }, atMs);
  return untilMs > atMs ? untilMs : undefined;
}
