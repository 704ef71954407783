import { CronPattern } from 'croner';
import type { WallMs } from './time-zone.ts';

/** The wall times of an expression, on a clock without changes. */
export interface WallPattern {
  /** True when seconds, minutes and hours have no `*` and no step, so that the times are fixed. */
  readonly named: boolean;
  /** Returns the first time after `wall`; undefined when there is none within a hundred years, as for 30 February, or until the year 9999. */
  next(wall: WallMs): WallMs | undefined;
}

const dayMs = 86_400_000;
const horizonMonths = 1200;
const lastYear = 9999;

/**
 * Parses an expression of 5 fields, or 6 with seconds; throws croner's error when it is invalid. Only croner's parser is used: its search
 * looks up the offset of each time and takes half a second to find that there is none.
 */
export function readPattern(expr: string): WallPattern {
  const pattern = new CronPattern(expr, undefined, { mode: '5-or-6-parts' });
  const [seconds, minutes, hours] = [pattern.second, pattern.minute, pattern.hour].map(chosen);
  const times = expr.trim().split(/\s+/).slice(0, -3).join(' ');
  const isDay = dayRule(pattern);

  /** Returns the milliseconds of the first time of a day at or after `fromMs`. */
  function timeFrom(fromMs: number): number | undefined {
    for (const hour of hours ?? []) {
      if ((hour + 1) * 3_600_000 <= fromMs) continue;
      for (const minute of minutes ?? []) {
        const minuteMs = hour * 3_600_000 + minute * 60_000;
        if (minuteMs + 60_000 <= fromMs) continue;
        for (const second of seconds ?? []) if (minuteMs + second * 1000 >= fromMs) return minuteMs + second * 1000;
      }
    }
    return undefined;
  }

  return {
    named: !/[*?/]/.test(times),
    next(wall) {
      const todayMs = Math.floor(wall / dayMs) * dayMs;
      const today = new Date(todayMs);
      let [year, month, day] = [today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate()];
      if (isDay(year, month, day)) {
        const timeMs = timeFrom(wall - todayMs + 1);
        if (timeMs !== undefined) return todayMs + timeMs;
      }
      const firstMs = timeFrom(0) ?? 0;
      for (let left = horizonMonths; left > 0 && year <= lastYear; left -= 1) {
        const last = pattern.month[month] === 1 ? lastDay(year, month) : 0;
        for (day += 1; day <= last; day += 1) if (isDay(year, month, day)) return Date.UTC(year, month, day) + firstMs;
        day = 0;
        month += 1;
        if (month === 12) [year, month] = [year + 1, 0];
      }
      return undefined;
    },
  };
}

type IsDay = (year: number, month: number, day: number) => boolean;

/** Builds the day rule: when day of month and day of week are both set, either may match, or with a plus both must. */
function dayRule(pattern: CronPattern): IsDay {
  const { lastDayOfMonth, lastWeekday, starDOM, starDOW, useAndLogic } = pattern;
  const nearest = chosen(pattern.nearestWeekdays).map((index) => index + 1);
  const ofMonth: IsDay = (year, month, day) =>
    pattern.day[day - 1] === 1 ||
    (lastDayOfMonth && day === lastDay(year, month)) ||
    (lastWeekday && day === nearestWorkday(year, month, lastDay(year, month))) ||
    nearest.some((one) => one <= lastDay(year, month) && day === nearestWorkday(year, month, one));
  const ofWeek: IsDay = (year, month, day) => {
    // One bit per week of the month, and one for the last week.
    const weeks = pattern.dayOfWeek[weekday(year, month, day)] ?? 0;
    const nth = Math.ceil(day / 7);
    return (weeks & (1 << (nth - 1))) !== 0 || ((weeks & 32) !== 0 && day + 7 > lastDay(year, month));
  };
  return (year, month, day) => {
    if (pattern.month[month] !== 1) return false;
    if (starDOW) return ofMonth(year, month, day);
    if (useAndLogic || starDOM) return ofMonth(year, month, day) && ofWeek(year, month, day);
    return ofMonth(year, month, day) || ofWeek(year, month, day);
  };
}

const chosen = (field: readonly number[]): number[] => [...field.keys()].filter((value) => Boolean(field[value]));
const weekday = (year: number, month: number, day: number): number => new Date(Date.UTC(year, month, day)).getUTCDay();
const lastDay = (year: number, month: number): number => new Date(Date.UTC(year, month + 1, 0)).getUTCDate();

/** Returns the nearest day from Monday to Friday within the month. */
function nearestWorkday(year: number, month: number, day: number): number {
  const on = weekday(year, month, day);
  if (on === 6) return day === 1 ? 3 : day - 1;
  if (on === 0) return day === lastDay(year, month) ? day - 2 : day + 1;
  return day;
}
