import type { CronScheduleRequest } from '@gatehouse/contract';
import { changesOf, instantsShowing, type Pattern, runsOf } from './schedule-oracle.ts';

/** One question to the scheduler, with the answer that the oracle found. */
export interface ScheduleCase {
  readonly request: CronScheduleRequest;
  /** The time of the question; runs are those after it. */
  readonly nowMs: number;
  /** The first runs, or the code of the error. */
  readonly expected: readonly number[] | string;
}

/** Returns an integer from 0 up to, not including, `below`. */
export type Int = (below: number) => number;

/** Changes of half an hour, of two and three hours, at midnight, of a whole day, for Ramadan, never, and with winter time as the exception. */
export const oddZones = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'Europe/Dublin',
  'America/New_York',
  'America/Los_Angeles',
  'America/St_Johns',
  'America/Sao_Paulo',
  'America/Santiago',
  'America/Havana',
  'America/Nuuk',
  'America/Caracas',
  'Atlantic/Azores',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Asia/Tehran',
  'Asia/Gaza',
  'Asia/Beirut',
  'Asia/Pyongyang',
  'Australia/Lord_Howe',
  'Australia/Sydney',
  'Pacific/Apia',
  'Pacific/Kiritimati',
  'Pacific/Kwajalein',
  'Pacific/Chatham',
  'Pacific/Auckland',
  'Antarctica/Troll',
  'Antarctica/Casey',
  '+05:45',
] as const;

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
const perCase = 3;
const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const weekdays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** Endless cases; the same numbers produce the same cases. */
export function* makeScheduleCases(int: Int): Generator<ScheduleCase, never> {
  const changes = new Map(oddZones.map((zone) => [zone, changesOf(zone, 1990, 2040)]));
  for (;;) {
    const zone = pick(int, oddZones);
    const nowMs = someMoment(int, changes.get(zone) ?? []);
    const kind = int(20);
    if (kind < 13) yield cronCase(int, zone, nowMs);
    else if (kind < 18) yield wallCase(int, zone, nowMs);
    else if (kind < 19) yield everyCase(int, nowMs);
    else {
      const seconds = 1 + int(10_000_000);
      yield { request: { kind: 'in', seconds }, nowMs, expected: [nowMs + seconds * 1000] };
    }
  }
}

/** Close to a change of the offset, to the end of a month or February, or anywhere. */
function someMoment(int: Int, changes: readonly number[]): number {
  const where = int(10);
  if (where < 6 && changes.length > 0) {
    const at = pick(int, changes);
    // Exactly there, a millisecond off, or some hours away.
    return at + pick(int, [0, -1, 1, -hourMs, hourMs, int(30 * 60) * minuteMs - 26 * hourMs, int(4 * hourMs) - 2 * hourMs]);
  }
  const year = 1990 + int(50);
  if (where < 8) return Date.UTC(year, 1 + int(2), 1) - int(3 * dayMs);
  if (where < 9) return Date.UTC(year, int(12), 1) - int(2 * dayMs);
  return Date.UTC(year, 0, 1) + int(366) * dayMs + int(dayMs);
}

function cronCase(int: Int, zone: string, nowMs: number): ScheduleCase {
  const pattern = makePattern(int);
  // A run at a moment is not after that moment.
  const [first] = runsOf(pattern, zone, nowMs, 1);
  const askedMs = first !== undefined && int(4) === 0 ? first - int(2) : nowMs;
  const runs = runsOf(pattern, zone, askedMs, perCase);
  return { request: { kind: 'cron', expr: pattern.text, tz: zone }, nowMs: askedMs, expected: runs.length === 0 ? 'invalid_expression' : runs };
}

/** A wall time with or without an offset. */
function wallCase(int: Int, zone: string, nearMs: number): ScheduleCase {
  // Close to what the clock shows there, which is up to 14 hours away.
  const offsetMs = Temporal.Instant.fromEpochMilliseconds(nearMs).toZonedDateTimeISO(zone).offsetNanoseconds / 1_000_000;
  const wallMinute = Math.floor((nearMs + offsetMs) / minuteMs) + pick(int, [int(180) - 90, int(28 * 60) - 14 * 60]);
  const second = int(60);
  const text = new Date(wallMinute * minuteMs + second * 1000).toISOString().slice(0, 19);
  const nowMs = wallMinute * minuteMs - 20 * hourMs + int(40 * 24) * hourMs * (int(8) === 0 ? 1 : -1);
  if (int(5) === 0) {
    const hours = int(27) - 12;
    const minutes = pick(int, [0, 0, 30, 45]);
    const sign = hours < 0 ? '-' : '+';
    const offset = `${sign}${String(Math.abs(hours)).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`;
    const atMs = wallMinute * minuteMs + second * 1000 - (hours * 60 + (hours < 0 ? -minutes : minutes)) * minuteMs;
    return { request: { kind: 'at', at: `${text}${offset}` }, nowMs, expected: atMs > nowMs ? [atMs] : 'past_schedule' };
  }
  const fold = pick(int, [undefined, 'earlier', 'later'] as const);
  const request = { kind: 'at', at: text, tz: zone, ...(fold !== undefined && { fold }) } as const;
  const instants = instantsShowing(zone, wallMinute).map((minute) => minute + second * 1000);
  if (instants.length === 0) return { request, nowMs, expected: 'nonexistent_wall_time' };
  if (instants.length > 1 && fold === undefined) return { request, nowMs, expected: 'ambiguous_wall_time' };
  const atMs = (fold === 'later' ? instants.at(-1) : instants[0]) ?? 0;
  return { request, nowMs, expected: atMs > nowMs ? [atMs] : 'past_schedule' };
}

function everyCase(int: Int, nowMs: number): ScheduleCase {
  const everyMs = pick(int, [1, 1 + int(1000), 1000 * (1 + int(5000)), dayMs, 7 * dayMs, 1 + int(40 * dayMs)]);
  const anchorMs = pick(int, [nowMs, nowMs - int(nowMs), nowMs - everyMs * (1 + int(9)), nowMs + int(30 * dayMs)]);
  if (anchorMs < 0) return everyCase(int, nowMs);
  // In numbers that do not round.
  let next = BigInt(anchorMs);
  if (anchorMs <= nowMs) next += ((BigInt(nowMs) - BigInt(anchorMs)) / BigInt(everyMs) + 1n) * BigInt(everyMs);
  const expected = Array.from({ length: perCase }, (_, index) => Number(next + BigInt(index) * BigInt(everyMs)));
  return { request: { kind: 'every', everyMs, anchorMs }, nowMs, expected };
}

interface Field {
  readonly text: string;
  has(value: number): boolean;
  readonly stepped: boolean;
}

/** A pattern biased towards the hours in which offsets change. */
function makePattern(int: Int): Pattern {
  const withSeconds = int(4) === 0;
  const seconds = withSeconds ? makeField(int, 0, 59, () => int(60)) : single(0);
  const minute = makeField(int, 0, 59, () => pick(int, [0, 15, 30, 45, 59, int(60)]));
  const hour = makeField(int, 0, 23, () => pick(int, [0, 1, 2, 2, 3, 23, int(24)]));
  const month = int(3) === 0 ? makeMonth(int) : always;
  const days = makeDays(int);
  return {
    text: [...(withSeconds ? [seconds.text] : []), minute.text, hour.text, days.dom, month.text, days.dow].join(' '),
    seconds: Array.from({ length: 60 }, (_, second) => second).filter((second) => seconds.has(second)),
    minute: (value) => minute.has(value),
    hour: (value) => hour.has(value),
    day: (year, monthOf, day) => month.has(monthOf) && days.has(year, monthOf, day),
    named: !seconds.stepped && !minute.stepped && !hour.stepped,
  };
}

const always: Field = { text: '*', has: () => true, stepped: true };
const single = (value: number): Field => ({ text: String(value), has: (other) => other === value, stepped: false });

function makeField(int: Int, least: number, most: number, value: () => number): Field {
  const kind = int(10);
  if (kind < 5) return single(value());
  if (kind < 6) return always;
  if (kind < 7) {
    const step = 1 + int(most - least);
    return { text: `*/${step}`, has: (other) => (other - least) % step === 0, stepped: true };
  }
  const [low = least, high = most] = [value(), value()].toSorted((a, b) => a - b);
  if (kind < 8) return { text: `${low},${high}`, has: (other) => other === low || other === high, stepped: false };
  if (kind < 9) return { text: `${low}-${high}`, has: (other) => other >= low && other <= high, stepped: false };
  const step = 1 + int(5);
  return { text: `${low}-${high}/${step}`, has: (other) => other >= low && other <= high && (other - low) % step === 0, stepped: true };
}

function makeMonth(int: Int): Field {
  const first = 1 + pick(int, [1, 2, 9, int(12)]);
  const second = 1 + int(12);
  const one = first > 12 ? 12 : first;
  return pick(int, [
    single(one),
    { text: months[one - 1] ?? '', has: (value: number) => value === one, stepped: false },
    { text: `${one},${months[second - 1] ?? ''}`, has: (value: number) => value === one || value === second, stepped: false },
  ]);
}

interface Days {
  readonly dom: string;
  readonly dow: string;
  has(year: number, month: number, day: number): boolean;
}

/** Days of the month or of the week; with both, either matches, and both must with a plus. */
function makeDays(int: Int): Days {
  const kind = int(10);
  if (kind < 4) return { dom: '*', dow: '*', has: () => true };
  const dom = makeDayOfMonth(int);
  const dow = makeWeekday(int);
  if (kind < 6) return { dom: dom.text, dow: '*', has: dom.has };
  if (kind < 8) return { dom: '*', dow: dow.text, has: dow.has };
  if (kind < 9) return { dom: dom.text, dow: dow.text, has: (...day) => dom.has(...day) || dow.has(...day) };
  return { dom: dom.text, dow: `+${dow.text}`, has: (...day) => dom.has(...day) && dow.has(...day) };
}

interface DayRule {
  readonly text: string;
  has(year: number, month: number, day: number): boolean;
}

function makeDayOfMonth(int: Int): DayRule {
  const one = pick(int, [1, 28, 29, 30, 31, 1 + int(31)]);
  const other = 1 + int(31);
  const [low = 1, high = 31] = [one, other].toSorted((a, b) => a - b);
  return pick(int, [
    { text: String(one), has: (_year: number, _month: number, day: number) => day === one },
    { text: `${one},${other}`, has: (_year: number, _month: number, day: number) => day === one || day === other },
    { text: `${low}-${high}`, has: (_year: number, _month: number, day: number) => day >= low && day <= high },
    { text: 'L', has: (year: number, month: number, day: number) => day === lastDay(year, month) },
    { text: `${one},L`, has: (year: number, month: number, day: number) => day === one || day === lastDay(year, month) },
    { text: `${one}W`, has: (year: number, month: number, day: number) => day === nearestWorkday(year, month, one) },
  ]);
}

function makeWeekday(int: Int): DayRule {
  const one = int(7);
  const name = weekdays[one] ?? '';
  const nth = 1 + int(5);
  return pick(int, [
    { text: String(one === 0 ? pick(int, [0, 7]) : one), has: (year: number, month: number, day: number) => weekday(year, month, day) === one },
    { text: name.toLowerCase(), has: (year: number, month: number, day: number) => weekday(year, month, day) === one },
    { text: 'MON-FRI', has: (year: number, month: number, day: number) => ![0, 6].includes(weekday(year, month, day)) },
    { text: `${name}#${nth}`, has: (year: number, month: number, day: number) => weekday(year, month, day) === one && Math.ceil(day / 7) === nth },
    {
      text: `${one}#L`,
      has: (year: number, month: number, day: number) => weekday(year, month, day) === one && day + 7 > lastDay(year, month),
    },
  ]);
}

const lastDay = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();
const weekday = (year: number, month: number, day: number): number => new Date(Date.UTC(year, month - 1, day)).getUTCDay();

/** Returns the day from Monday to Friday that is nearest to a day, within its month; none when the month has no such day. */
function nearestWorkday(year: number, month: number, day: number): number | undefined {
  const last = lastDay(year, month);
  if (day > last) return undefined;
  const on = weekday(year, month, day);
  if (on === 6) return day === 1 ? 3 : day - 1;
  if (on === 0) return day === last ? day - 2 : day + 1;
  return day;
}

function pick<T>(int: Int, from: readonly T[]): T {
  const one = from[int(from.length)];
  if (one === undefined && from.length === 0) throw new Error('there is nothing to pick from');
  return one as T;
}
