import { describe, expect, test } from 'vitest';
import { isActive, nextActive } from './active-hours.ts';
import { nextDue, phaseOf } from './due-times.ts';

const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
const minute = 60_000;
const hour = 60 * minute;
const seed = Buffer.alloc(32, 7);

describe('active hours', () => {
  test.each([
    ['08:00', '22:00', '2026-03-01T08:00Z', true],
    ['08:00', '22:00', '2026-03-01T21:59Z', true],
    ['08:00', '22:00', '2026-03-01T22:00Z', false],
    ['08:00', '22:00', '2026-03-01T07:59Z', false],
    ['22:00', '06:30', '2026-03-01T23:00Z', true],
    ['22:00', '06:30', '2026-03-01T06:29Z', true],
    ['22:00', '06:30', '2026-03-01T06:30Z', false],
    ['22:00', '06:30', '2026-03-01T21:59Z', false],
  ])('%s to %s at %s: %s', (start, end, moment, expected) => expect(isActive({ start, end }, at(moment))).toBe(expected));

  test('follow their time zone, even across DST changes', () => {
    const hours = { start: '08:00', end: '22:00', timeZone: 'Europe/Berlin' };
    expect(nextActive(hours, at('2026-03-28T21:30Z'))).toBe(at('2026-03-29T06:00Z'));
    expect(nextActive(hours, at('2026-10-24T20:30Z'))).toBe(at('2026-10-25T07:00Z'));
    expect(nextActive(hours, at('2026-03-28T12:00Z'))).toBe(at('2026-03-28T12:00Z'));
  });

  test('that start in a skipped hour start after it', () => {
    const hours = { start: '02:30', end: '05:00', timeZone: 'Europe/Berlin' };
    expect(nextActive(hours, at('2026-03-28T23:00Z'))).toBe(at('2026-03-29T01:30Z'));
  });
});

describe('due times', () => {
  test('of 500 agents are spread over the interval, stable for a seed and different for another', () => {
    const phases = Array.from({ length: 500 }, (_, n) => phaseOf(seed, `agent-${n}`, 30 * minute));
    expect(Array.from({ length: 500 }, (_, n) => phaseOf(seed, `agent-${n}`, 30 * minute))).toEqual(phases);
    expect(phaseOf(Buffer.alloc(32, 8), 'agent-0', 30 * minute)).not.toBe(phases[0]);
    const perMinute = Map.groupBy(phases, (phase) => Math.floor(phase / minute));
    expect(perMinute.size).toBe(30);
    expect(Math.max(...[...perMinute.values()].map(({ length }) => length))).toBeLessThan(40);
  });

  test('are a whole number of intervals from the phase and strictly after the given time', () => {
    for (const after of [0, 1, 12_345, 30 * minute - 1, 30 * minute, at('2026-03-01T00:00Z')]) {
      const due = nextDue(after, 30 * minute, 777, undefined);
      expect((due - 777) % (30 * minute)).toBe(0);
      expect(due).toBeGreaterThan(after);
      expect(due - after).toBeLessThanOrEqual(30 * minute);
    }
    expect(nextDue(777, 30 * minute, 777, undefined)).toBe(777 + 30 * minute);
  });

  test('are within the active hours; an interval that skips them beats at their start', () => {
    const hours = { start: '08:00', end: '09:00' };
    for (let phase = 0; phase < 24 * hour; phase += 37 * minute) {
      const first = nextDue(at('2026-03-01T12:00Z'), 24 * hour, phase, hours);
      const second = nextDue(first, 24 * hour, phase, hours);
      expect(isActive(hours, first) && isActive(hours, second)).toBe(true);
      expect(second - first).toBe(24 * hour);
      const half = nextDue(at('2026-03-01T12:00Z'), 20 * minute, phase % (20 * minute), hours);
      expect(half).toBeGreaterThanOrEqual(at('2026-03-02T08:00Z'));
      expect(half).toBeLessThan(at('2026-03-02T08:20Z'));
    }
  });
});
