import { expect, test } from 'vitest';
import { hoursOf } from './hours.ts';

const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
const hourMs = 3_600_000;
const lengths = (now: string, zone: string) => hoursOf(at(now), zone).map(({ name, fromMs, toMs }) => `${name}:${(toMs - fromMs) / hourMs}`);

test('an ordinary day is 24 hours, from the hour after the current one of yesterday', () => {
  const hours = hoursOf(at('2026-06-10T09:20:00Z'), 'Europe/Berlin');
  expect(hours.map(({ name }) => Number(name))).toEqual([
    ...Array.from({ length: 12 }, (_, n) => n + 12),
    ...Array.from({ length: 12 }, (_, n) => n),
  ]);
  expect(hours[0]?.fromMs).toBe(at('2026-06-09T10:00:00Z'));
  expect(hours.at(-1)).toEqual({ name: '11', fromMs: at('2026-06-10T09:00:00Z'), toMs: at('2026-06-10T10:00:00Z') });
});

test.each([
  ['2026-03-29T20:30:00Z', 'Europe/Berlin', '2:0', 23],
  ['2026-10-25T21:30:00Z', 'Europe/Berlin', '2:2', 25],
  ['2026-09-06T20:30:00Z', 'America/Santiago', '0:0', 23],
  ['2026-10-04T05:30:00Z', 'Australia/Lord_Howe', '2:0.5', 23.5],
  ['2026-04-05T05:30:00Z', 'Australia/Lord_Howe', '1:1.5', 24.5],
  ['2026-06-10T09:20:00Z', 'Asia/Kathmandu', '5:1', 24],
])('at %s in %s an hour of the day is %s, of %d hours in all, without gap or overlap', (now, zone, odd, total) => {
  const hours = hoursOf(at(now), zone);
  expect(lengths(now, zone)).toContain(odd);
  expect(new Set(hours.map(({ name }) => name)).size).toBe(24);
  for (const [index, { fromMs }] of hours.entries()) expect(fromMs).toBe(hours[index - 1]?.toMs ?? fromMs);
  const [first, last] = [hours[0]?.fromMs ?? 0, hours.at(-1)?.toMs ?? 0];
  expect((last - first) / hourMs).toBe(total);
  expect(at(now)).toBeGreaterThanOrEqual(hours.at(-1)?.fromMs ?? Infinity);
  expect(at(now)).toBeLessThan(last);
});
