import { makeScheduleCases, oddZones } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { nextRun, normaliseSchedule, runsBetween, type ScheduleError } from './schedule.ts';

const nowMs = Date.UTC(2026, 0, 1);
const normalise = (request: Parameters<typeof normaliseSchedule>[0], defaultZone = 'UTC') => normaliseSchedule(request, { nowMs, defaultZone });
const iso = (runs: readonly number[]) => runs.map((run) => new Date(run).toISOString().replace('.000Z', 'Z'));
const cron = (expr: string, tz: string) => ({ kind: 'cron', expr, tz }) as const;
const from = (schedule: Parameters<typeof nextRun>[0], after: string, count: number) =>
  iso(runsBetween(schedule, Date.parse(after), Number.MAX_SAFE_INTEGER, count));

/** Returns a seeded random number generator. */
function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
}

test('agrees with an oracle that tries every minute, near changes of the clock, leap days and ends of months', { timeout: 60_000 }, () => {
  const seed = Math.floor(Math.random() * 1e9);
  const kinds = new Set<string>();
  const zones = new Set<string | undefined>();
  let left = 800;
  for (const { request, nowMs: at, expected } of makeScheduleCases(numbers(seed))) {
    const normal = normaliseSchedule(request, { nowMs: at, defaultZone: 'UTC' });
    const actual = 'error' in normal ? normal.error.code : runsBetween(normal.schedule, at, Number.MAX_SAFE_INTEGER, expected.length);
    expect(actual, `seed ${seed}: ${JSON.stringify(request)} at ${new Date(at).toISOString()}`).toEqual(expected);
    if ('schedule' in normal && request.kind !== 'at') expect(nextRun(normal.schedule, at)).toBe(expected[0]);
    kinds.add(typeof expected === 'string' ? expected : request.kind);
    if ('tz' in request) zones.add(request.tz);
    left -= 1;
    if (left === 0) break;
  }
  expect([...kinds].toSorted()).toEqual(
    expect.arrayContaining(['at', 'cron', 'every', 'in', 'invalid_expression', 'nonexistent_wall_time', 'past_schedule']),
  );
  expect(zones.size).toBe(oddZones.length);
});

test('a fixed time runs once: at the first pass of a fold, at the end of a gap', () => {
  expect(from(cron('30 2 * * *', 'Europe/Berlin'), '2026-03-28T00:00Z', 3)).toEqual([
    '2026-03-28T01:30:00Z',
    '2026-03-29T01:00:00Z',
    '2026-03-30T00:30:00Z',
  ]);
  expect(from(cron('0,30 2,3 * * *', 'Europe/Berlin'), '2026-03-29T00:00Z', 3)).toEqual([
    '2026-03-29T01:00:00Z',
    '2026-03-29T01:30:00Z',
    '2026-03-30T00:00:00Z',
  ]);
  expect(from(cron('30 2 * * *', 'Europe/Berlin'), '2026-10-24T12:00Z', 2)).toEqual(['2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z']);
  expect(from(cron('45 1 * * *', 'Australia/Lord_Howe'), '2026-04-04T00:00Z', 2)).toEqual(['2026-04-04T14:45:00Z', '2026-04-05T15:15:00Z']);
  // The gap skips midnight, but no day is lost.
  expect(from(cron('0 0 * * *', 'America/Sao_Paulo'), '2018-11-03T12:00Z', 2)).toEqual(['2018-11-04T03:00:00Z', '2018-11-05T02:00:00Z']);
  // The gap goes up to midnight.
  expect(from(cron('45 23 * * *', 'Asia/Pyongyang'), '2018-05-03T16:00Z', 2)).toEqual(['2018-05-04T15:00:00Z', '2018-05-05T14:45:00Z']);
});

test('a day that a zone skips has no runs', () => {
  expect(from(cron('0 9 * * *', 'Pacific/Apia'), '2011-12-29T00:00Z', 3)).toEqual([
    '2011-12-29T19:00:00Z',
    '2011-12-30T19:00:00Z',
    '2011-12-31T19:00:00Z',
  ]);
  expect(from(cron('0 9 30 12 *', 'Pacific/Apia'), '2011-01-01T00:00Z', 1)).toEqual(['2012-12-29T19:00:00Z']);
});

test('an expression with a star or a step follows real time', () => {
  expect(from(cron('30 * * * *', 'Europe/Berlin'), '2026-10-25T00:00Z', 3)).toEqual([
    '2026-10-25T00:30:00Z',
    '2026-10-25T01:30:00Z',
    '2026-10-25T02:30:00Z',
  ]);
  expect(from(cron('30 */2 * * *', 'Europe/Berlin'), '2026-03-28T23:00Z', 2)).toEqual(['2026-03-28T23:30:00Z', '2026-03-29T02:30:00Z']);
});

test('six fields begin with seconds', () => {
  expect(from(cron('*/20 59 23 31 12 *', 'Asia/Kathmandu'), '2026-01-01T00:00Z', 2)).toEqual(['2026-12-31T18:14:00Z', '2026-12-31T18:14:20Z']);
});

test('times already returned are not repeated after the clock changes', () => {
  // The scheduler asks for times after the latest known run, whatever its clock shows.
  const hourMs = 3_600_000;
  const steps = [10 * 60_000, -2 * hourMs, 30 * 60_000, 3 * 24 * hourMs, -2 * hourMs, 5 * 60_000, 3 * hourMs];
  for (const zone of oddZones)
    for (const expr of ['*/10 * * * *', '0,30 1-3 * * *', '15 2 * * *', '*/7 2 * * *']) {
      const start = Date.UTC(2026, 9, 24, 22);
      const returned: number[] = [];
      let clockMs = start;
      let latestMs = start;
      for (const step of [...steps, ...steps]) {
        clockMs += step;
        for (let run = nextRun(cron(expr, zone), latestMs); run !== null && run <= clockMs; run = nextRun(cron(expr, zone), latestMs)) {
          returned.push(run);
          latestMs = run;
        }
      }
      expect(returned, `${expr} ${zone}`).toEqual(runsBetween(cron(expr, zone), start, latestMs, 10_000));
      expect(new Set(returned).size).toBe(returned.length);
    }
});

test('an interval is counted from its anchor, which is its first run', () => {
  const schedule = { kind: 'every', everyMs: 1000, anchorMs: 5500 } as const;
  expect(runsBetween(schedule, 0, 8000, 9)).toEqual([5500, 6500, 7500]);
  expect([nextRun(schedule, 5499), nextRun(schedule, 5500), nextRun(schedule, 5501)]).toEqual([5500, 6500, 6500]);
  expect(normalise({ kind: 'every', everyMs: 1000 })).toEqual({ schedule: { kind: 'every', everyMs: 1000, anchorMs: nowMs } });
  const large = { kind: 'every', everyMs: 3, anchorMs: 1 } as const;
  expect(nextRun(large, 8_639_999_999_999_000)).toBe(8_639_999_999_999_002);
});

test('a single time runs exactly once', () => {
  const schedule = { kind: 'at', atMs: 5000 } as const;
  expect([nextRun(schedule, 4999), nextRun(schedule, 5000), nextRun(schedule, 5001)]).toEqual([5000, null, null]);
});

test.each<[Parameters<typeof normaliseSchedule>[0], ScheduleError['code'], string]>([
  [{ kind: 'in', seconds: 0 }, 'invalid_input', 'seconds'],
  [{ kind: 'in', seconds: 1.5 }, 'invalid_input', 'seconds'],
  [{ kind: 'in', seconds: Number.MAX_SAFE_INTEGER }, 'unsafe_epoch', 'seconds'],
  [{ kind: 'at', at: 'tomorrow' }, 'invalid_input', 'at'],
  [{ kind: 'at', at: '2026-02-30T10:00' }, 'invalid_input', 'at'],
  [{ kind: 'at', at: '2026-05-01T10:00[Europe/Berlin]' }, 'invalid_input', 'at'],
  [{ kind: 'at', at: '2026-05-01' }, 'invalid_input', 'at'],
  [{ kind: 'at', at: '2026-05-01T10:00+25:00' }, 'invalid_input', 'at'],
  [{ kind: 'at', at: '2026-05-01T10:00Z', tz: 'UTC' }, 'conflicting_timezone', 'tz'],
  [{ kind: 'at', at: '2026-05-01T10:00Z', fold: 'later' }, 'conflicting_timezone', 'fold'],
  [{ kind: 'at', at: '2026-05-01T10:00', tz: 'Mars/Olympus' }, 'invalid_timezone', 'tz'],
  [{ kind: 'at', at: '2026-03-29T02:00', tz: 'Europe/Berlin' }, 'nonexistent_wall_time', 'at'],
  [{ kind: 'at', at: '2026-10-25T02:59:59.999', tz: 'Europe/Berlin' }, 'ambiguous_wall_time', 'fold'],
  [{ kind: 'at', at: '2026-01-01T00:00:00Z' }, 'past_schedule', 'at'],
  [{ kind: 'every', everyMs: 0 }, 'invalid_input', 'everyMs'],
  [{ kind: 'every', everyMs: 1000, anchorMs: -1 }, 'invalid_input', 'anchorMs'],
  [{ kind: 'every', everyMs: 1000, anchorMs: Number.MAX_SAFE_INTEGER }, 'unsafe_epoch', 'anchorMs'],
  [{ kind: 'every', everyMs: Number.MAX_SAFE_INTEGER }, 'unsafe_epoch', 'everyMs'],
  [{ kind: 'cron', expr: '* * * * *', tz: '2026-01-01T00:00[UTC]' }, 'invalid_timezone', 'tz'],
  [{ kind: 'cron', expr: '* * * * *', tz: 'A'.repeat(129) }, 'invalid_timezone', 'tz'],
  [{ kind: 'cron', expr: '* * * *' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '* * * * * * *' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '60 * * * *' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '*/0 * * * *' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '@daily' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '2026-05-01T10:00:00' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: `0 0 1 1 ${'1,'.repeat(600)}1` }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '0 0 30 2 *' }, 'invalid_expression', 'expr'],
  [{ kind: 'cron', expr: '0 0 31 4,6,9,11 *' }, 'invalid_expression', 'expr'],
])('%o is rejected as %s', (request, code, field) => {
  const error = { code, path: `schedule.${field}`, message: expect.stringContaining(`schedule.${field} `) };
  expect(normalise(request)).toEqual({ error });
});

test("zones are normalised to the system's spelling, and default when absent", () => {
  expect(normalise({ kind: 'cron', expr: '0 9 * * *', tz: 'europe/berlin' })).toEqual({ schedule: cron('0 9 * * *', 'Europe/Berlin') });
  expect(normalise({ kind: 'cron', expr: '0 9 * * *' }, 'Asia/Tokyo')).toEqual({ schedule: cron('0 9 * * *', 'Asia/Tokyo') });
  expect(normalise({ kind: 'at', at: '2026-05-01T10:00' }, 'Asia/Tokyo')).toEqual({ schedule: { kind: 'at', atMs: Date.UTC(2026, 4, 1, 1) } });
  expect(normalise({ kind: 'at', at: '2026-05-01T10:00-0330' })).toEqual({ schedule: { kind: 'at', atMs: Date.UTC(2026, 4, 1, 13, 30) } });
});

test('endless schedules stop at the latest valid date', () => {
  expect(nextRun(cron('0 0 30 2 *', 'Europe/Berlin'), nowMs)).toBeNull();
  expect(nextRun(cron('0 0 31 2 +MON#5', 'Asia/Kathmandu'), nowMs)).toBeNull();
  expect(nextRun(cron('* * * * *', 'Europe/Berlin'), 8_640_000_000_000_000)).toBeNull();
  expect(nextRun(cron('0 2 * * *', 'Europe/Berlin'), Date.UTC(9999, 11, 31, 12))).toBeNull();
  expect(nextRun(cron('0 2 * * *', 'Europe/Berlin'), 8_640_000_000_000_000)).toBeNull();
  expect(nextRun({ kind: 'every', everyMs: 1000, anchorMs: 0 }, 8_640_000_000_000_000)).toBeNull();
  expect(runsBetween(cron('* * * * *', 'UTC'), nowMs, nowMs + 10_000_000, 0)).toEqual([]);
});
