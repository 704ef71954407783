import { locale } from '../../language.ts';
const dayMs = 86_400_000;

/** Available reporting periods. */
export const windows = [
  { days: 1, text: '24 h' },
  { days: 7, text: '7 d' },
  { days: 30, text: '30 d' },
  { days: 90, text: '90 d' },
] as const;

export interface Period {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Returns the last 24 hours to the minute, or whole days in this time zone up to now. */
export function periodOf(days: number, nowMs: number): Period {
  if (days === 1) return { sinceMs: nowMs - dayMs, untilMs: nowMs };
  const start = new Date(nowMs);
  start.setHours(0, 0, 0, 0);
  // Uses the calendar: days on which the clocks change don't have 24 hours.
  start.setDate(start.getDate() - (days - 1));
  return { sinceMs: start.getTime(), untilMs: nowMs };
}

/** Returns every day of a period as `2026-11-21` in this time zone, including days without spend. */
export function daysOf({ sinceMs, untilMs }: Period): string[] {
  const days: string[] = [];
  const day = new Date(sinceMs);
  day.setHours(12, 0, 0, 0);
  const last = keyOf(new Date(untilMs));
  for (let key = keyOf(day); key <= last && days.length < 400; key = keyOf(day)) {
    days.push(key);
    day.setDate(day.getDate() + 1);
  }
  return days;
}

function keyOf(day: Date): string {
  return [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, '0')).join('-');
}

/** Formats `2026-11-21` as "21 Nov" or "Saturday, 21 November 2026". */
export function dayLabel(key: string, style: 'short' | 'long'): string {
  const [year = 0, month = 1, day = 1] = key.split('-').map(Number);
  return new Date(year, month - 1, day).toLocaleDateString(
    locale,
    style === 'short' ? { day: 'numeric', month: 'short' } : { weekday: 'short', day: 'numeric', month: 'long', year: 'numeric' },
  );
}
