import { SessionReset } from '@gatehouse/contract';
import { describe, expect, test } from 'vitest';
import { dueReset, type ResetRule, resetRuleOf } from './reset-policy.ts';

const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
const rule = (changes: Partial<ResetRule> = {}): ResetRule => ({ mode: 'daily', hour: 4, timeZone: 'UTC', idleMinutes: 240, ...changes });

describe('dueReset', () => {
  test.each([
    ['before the hour nothing is due', {}, '2026-01-10T05:00Z', '2026-01-11T03:59:59Z', undefined],
    ['at the hour a new day begins', {}, '2026-01-10T05:00Z', '2026-01-11T04:00Z', 'daily'],
    ['a message of the new day belongs to it', {}, '2026-01-11T04:00Z', '2026-01-11T23:59Z', undefined],
    ['before the hour it is still the previous day', {}, '2026-01-10T03:59Z', '2026-01-11T01:00Z', 'daily'],
    ['many days are one reset', {}, '2025-01-01T00:00Z', '2026-01-11T01:00Z', 'daily'],
    ['the hour is that of the zone', { timeZone: 'Asia/Tokyo' }, '2026-01-10T18:59Z', '2026-01-10T19:00Z', 'daily'],
    ['and not that of UTC', { timeZone: 'Asia/Tokyo' }, '2026-01-10T19:00Z', '2026-01-11T18:59Z', undefined],
    // Berlin, 29 March 2026: 02:00 to 03:00 does not exist; the day begins at 03:00 = 01:00 UTC.
    ['in a gap: not before its end', { timeZone: 'Europe/Berlin', hour: 2 }, '2026-03-28T12:00Z', '2026-03-29T00:59:59Z', undefined],
    ['in a gap: at its end', { timeZone: 'Europe/Berlin', hour: 2 }, '2026-03-28T12:00Z', '2026-03-29T01:00Z', 'daily'],
    ['in a gap: once only', { timeZone: 'Europe/Berlin', hour: 2 }, '2026-03-29T01:00Z', '2026-03-29T20:00Z', undefined],
    // Berlin, 25 October 2026: 02:00 to 03:00 comes twice, at 00:00 and at 01:00 UTC.
    ['in a fold: at the first', { timeZone: 'Europe/Berlin', hour: 2 }, '2026-10-24T12:00Z', '2026-10-25T00:00Z', 'daily'],
    ['in a fold: not again at the second', { timeZone: 'Europe/Berlin', hour: 2 }, '2026-10-25T00:00Z', '2026-10-25T01:30Z', undefined],
    // Samoa had no 30 December 2011.
    ['a skipped day does not count', { timeZone: 'Pacific/Apia' }, '2011-12-29T14:00Z', '2011-12-30T13:59Z', undefined],
    ['midnight that does not exist', { timeZone: 'America/Santiago', hour: 0 }, '2026-09-05T12:00Z', '2026-09-06T04:00Z', 'daily'],
    ['idle: one millisecond short', { mode: 'idle', idleMinutes: 1 }, '2026-01-10T05:00:00.001Z', '2026-01-10T05:01Z', undefined],
    ['idle: long enough', { mode: 'idle', idleMinutes: 1 }, '2026-01-10T05:00Z', '2026-01-10T05:01Z', 'idle'],
    ['idle ignores days', { mode: 'idle' }, '2026-01-10T03:59Z', '2026-01-10T04:01Z', undefined],
    ['both: the day', { mode: 'both' }, '2026-01-10T03:59Z', '2026-01-10T04:01Z', 'daily'],
    ['both: idle', { mode: 'both' }, '2026-01-10T05:00Z', '2026-01-10T09:00Z', 'idle'],
    ['both: neither', { mode: 'both' }, '2026-01-10T05:00Z', '2026-01-10T08:59Z', undefined],
    ['none: never', { mode: 'none' }, '2020-01-10T05:00Z', '2026-01-10T08:59Z', undefined],
    ['a backward clock step resets nothing', { mode: 'both' }, '2026-01-12T05:00Z', '2026-01-10T08:59Z', undefined],
  ] as const)('%s', (_name, changes, last, now, expected) => {
    expect(dueReset(rule(changes), at(last), at(now))).toBe(expected);
  });
});

describe('resetRuleOf', () => {
  const reset = SessionReset().parse({
    mode: 'daily',
    timeZone: 'Europe/Berlin',
    group: { mode: 'idle', idleMinutes: 30 },
    thread: { mode: 'none' },
  });
  test.each([
    ['ada:desk', { mode: 'daily', hour: 4, timeZone: 'Europe/Berlin', idleMinutes: 240 }],
    ['ada:desk:group', { mode: 'idle', hour: 4, timeZone: 'Europe/Berlin', idleMinutes: 30 }],
    ['ada:desk:group:7', { mode: 'none' }],
    ['ada:desk::7', { mode: 'none' }],
    ['ada%3Ab:desk', { mode: 'daily' }],
  ])('%s', (key, expected) => {
    expect(resetRuleOf(reset, key)).toMatchObject(expected);
  });

  test('an unknown zone is rejected', () => {
    expect(SessionReset().safeParse({ timeZone: 'Mars/Olympus' }).success).toBe(false);
  });
});
