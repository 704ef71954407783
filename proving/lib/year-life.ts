import { existsSync, statSync } from 'node:fs';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { join } from 'node:path';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { type UsageQuery, type UsageSums, rollUp, usageReport } from '../../packages/server/src/features/access/budgets/store.ts';
import { beginNode } from '../../packages/server/src/features/operations/nodes/store.ts';
import { Recorder, recorderLimits } from '../../packages/server/src/features/operations/events/recorder.ts';
import { batchesBefore } from '../../packages/server/src/features/operations/events/store.ts';
import { queryAudit } from '../../packages/server/src/features/operations/observability/audit-store.ts';
import { RetentionConfig } from '../../packages/server/src/features/operations/retention/config.ts';
import { createRetention, type Retention } from '../../packages/server/src/features/operations/retention/retention.ts';
import { TraceRecorder } from '../../packages/server/src/features/operations/traces/recorder.ts';
import { findRecords } from '../../packages/server/src/features/operations/traces/store.ts';
import type { Clock } from '../../packages/server/src/kernel/clock.ts';
import { writeAudit } from '../../packages/server/src/kernel/audit.ts';
import type { Db } from '../../packages/server/src/kernel/db/db.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { idBefore } from '../../packages/server/src/kernel/ids.ts';
import { createLanes } from '../../packages/server/src/kernel/lane.ts';
import { createLogger } from '../../packages/server/src/kernel/logger.ts';
import { acceptChannelMessages } from '../../packages/server/src/transactions/accept-channel-messages.ts';
import { commitTurn } from '../../packages/server/src/transactions/commit-turn.ts';
import { keptRecords } from '../../packages/server/src/wiring/retention.ts';
import { bootId, chatsOf, dayMs, type Pace, traceOf, turnsOf } from './year-day.ts';

const startMs = Date.UTC(2026, 0, 1);
/** Turns whose commits are pending at the same time. */
const atOnce = 250;
const eventsAtOnce = 10_000;
/** The shortest that the configuration allows, so that most of the year is deleted. */
export const config = { ...RetentionConfig.parse({ turnDays: 90, auditDays: 90 }), traceDays: 30 };
const payload = JSON.stringify({ agentId: 'default', sessionKey: 'chat', toolName: 'read', durationMs: 41, success: true });

export interface Sizes {
  readonly day: number;
  readonly mainBytes: number;
  readonly telemetryBytes: number;
}

/** Milliseconds of each query: median, and the 95th of 100. */
export type Timings = Readonly<Record<string, { readonly p50: number; readonly p95: number }>>;

export interface YearReport {
  readonly turns: number;
  readonly calls: number;
  readonly events: number;
  readonly sizes: readonly Sizes[];
  readonly first: Timings;
  readonly last: Timings;
  /** Longest delay of the event loop while the queries of `last` ran. */
  readonly loopMs: number;
  readonly deleted: Readonly<Record<string, number>>;
  /** Days from the oldest record of each kind to the end. */
  readonly oldestDays: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

/** Lives a number of days in a data folder: what happens each day, the sums of its calls, and the deletion of what is old. */
export async function liveYear(dataDir: string, days: number, pace: Pace, progress: (line: string) => void): Promise<YearReport> {
  const clock = createStepClock(startMs);
  const { log } = createLogger({ level: 'fatal', redact: (line) => line, write: () => {} });
  const workerUrl = new URL('../../packages/server/src/storage-worker.ts', import.meta.url);
  await using db = await openDb({ dataDir, clock, log, workerUrl });
  await db.write(beginNode, { bootId, homeId: 'home', version: '0', role: 'active', leaseMs: 1e12, isSole: 1, atMs: startMs, prunedBeforeMs: 0 });
  const lanes = createLanes();
  const kept = keptRecords({
    db,
    lanes,
    browserRecordings: { all: async () => [], remove: async () => false },
    cleared: () => {},
    config: { current: config },
  });
  await using retention = createRetention({ clock: withoutPauses(clock), log, kept, isBusy: () => false });
  const events = await Recorder.open({ db, clock, log, limits: recorderLimits });
  const traces = new TraceRecorder({ db, clock, log });
  const journal = new Map<string, number>();
  const sizes: Sizes[] = [];
  let first: Timings = {};
  let calls = 0;
  let eventId = events.startId;

  for (let day = 0; day < days; day += 1) {
    const dayStartMs = startMs + day * dayMs;
    const turns = turnsOf(day, dayStartMs, pace);
    for (let at = 0; at < turns.length; at += atOnce) {
      const some = turns.slice(at, at + atOnce);
      await Promise.all(some.map((turn) => db.write(commitTurn, turn)));
      for (const turn of some) traces.push(traceOf(turn));
      await traces.flush();
    }
    for (const { calls: ofTurn } of turns) {
      calls += ofTurn.length;
      for (const { provider, costNano } of ofTurn) journal.set(provider, (journal.get(provider) ?? 0) + (costNano ?? 0));
    }
    for (let left = pace.events; left > 0; left -= eventsAtOnce) {
      for (let n = 0; n < Math.min(left, eventsAtOnce); n += 1) {
        eventId += 1;
        events.push({ id: eventId, kind: 'tool:finished', owner: 'tk_ada', agentId: 'default', atMs: dayStartMs, json: payload });
        if (n % 500 === 499) await events.flush();
      }
      await events.flush();
    }
    await db.write(acceptChannelMessages, chatsOf(day, dayStartMs, pace));
    await addAudit(db, dayStartMs, pace.subAgents);
    while (await db.write(rollUp, { limit: 250 }));
    await passDay(clock, retention, dayStartMs + dayMs);
    if (day === 6) first = await timeQueries(db, clock.now(), turns.at(-1)?.turn.id ?? '');
    if (day % 30 === 29 || day === days - 1) {
      sizes.push({ day: day + 1, mainBytes: bytesOf(dataDir, 'gatehouse.db'), telemetryBytes: bytesOf(dataDir, 'telemetry.db') });
      progress(
        `YEAR day ${day + 1}/${days}: ${calls} calls, ${Object.values(sizes.at(-1) ?? {})
          .slice(1)
          .join(' and ')} bytes`,
      );
    }
  }
  const nowMs = clock.now();
  const newest = turnsOf(days - 1, nowMs - dayMs, pace).at(-1)?.turn.id ?? '';
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const last = await timeQueries(db, nowMs, newest);
  loop.disable();
  const state = await retention.state();
  const oldestDays = Object.fromEntries(
    state.kept.map(({ name, oldestAtMs }) => [name, oldestAtMs === undefined ? 0 : (nowMs - oldestAtMs) / dayMs]),
  );
  const deleted = Object.fromEntries(state.kept.map((one) => [one.name, one.deleted]));
  const wrong = [...(await wrongSums(db, nowMs, journal, calls)), ...wrongAges(state.kept, oldestDays)];
  await events.end(eventId + 1);
  return { turns: days * pace.turns, calls, events: days * pace.events, sizes, first, last, loopMs: loop.max / 1e6, deleted, oldestDays, wrong };
}

/** Pauses between two steps take no time, so that a day lasts as long as a day, however slow the machine is. */
const withoutPauses = (clock: StepClock): Clock => ({
  ...clock,
  after(ms, run) {
    if (ms > 60_000) return clock.after(ms, run);
    const pause = setImmediate(run);
    return () => clearImmediate(pause);
  },
});

/** Time passes to the end of a day; waits until what is due is deleted. */
async function passDay(clock: StepClock, retention: Retention, endMs: number): Promise<void> {
  clock.advance(Math.max(0, endMs - clock.now()));
  do await new Promise((done) => setImmediate(done));
  while (retention.nextAtMs() <= clock.now());
  // Until the next time is set.
  await new Promise((done) => setImmediate(done));
}

async function addAudit(db: Db, dayStartMs: number, count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => dayStartMs + n);
  await Promise.all(
    rows.map((atMs) =>
      db.write(writeAudit, {
        id: `${idBefore('au', atMs)}-7000-8000-000000000000`,
        atMs,
        principalId: 'tk_ada',
        action: 'agents.update',
        classification: 'mutate',
        outcome: 'success',
        traceId: '0',
      }),
    ),
  );
}

const bytesOf = (dataDir: string, name: string): number =>
  [name, `${name}-wal`].reduce((sum, file) => sum + (existsSync(join(dataDir, file)) ? statSync(join(dataDir, file)).size : 0), 0);

const everything = (fromMs: number, toMs: number, groupBy: UsageQuery['groupBy']): UsageQuery => ({
  ranges: [{ name: '', fromMs, toMs }],
  groupBy,
  principalId: null,
  agentIds: null,
  limit: 10_000,
});

/** Times the queries of the reports of a week and of a year, and of the newest records. */
async function timeQueries(db: Db, nowMs: number, turnId: string): Promise<Timings> {
  const queries: Readonly<Record<string, () => Promise<unknown>>> = {
    'billing by provider': () => db.read(usageReport, everything(Math.max(startMs, nowMs - 365 * dayMs) + 1_234, nowMs, ['provider', 'model'])),
    'billing of a week': () => db.read(usageReport, everything(nowMs - 7 * dayMs + 1_234, nowMs, ['provider', 'model'])),
    'trace by id': () => db.read(findRecords, { ref: turnId }),
    audit: () =>
      db.read(queryAudit, {
        fromMs: null,
        toMs: null,
        action: null,
        classification: null,
        outcome: null,
        target: null,
        principalIds: [],
        before: null,
        limit: 100,
      }),
    'newest events': () => db.read(batchesBefore, { id: Number.MAX_SAFE_INTEGER }),
  };
  const timings: Record<string, Timings[string]> = {};
  for (const [name, run] of Object.entries(queries)) {
    const taken: number[] = [];
    for (let n = 0; n < 100; n += 1) {
      const sinceMs = performance.now();
      await run();
      taken.push(performance.now() - sinceMs);
    }
    taken.sort((a, b) => a - b);
    timings[name] = { p50: taken[50] ?? 0, p95: taken[95] ?? 0 };
  }
  return timings;
}

/** Compares the reports over everything with the journal of the calls, in slots and by conversation. */
async function wrongSums(db: Db, nowMs: number, journal: ReadonlyMap<string, number>, calls: number): Promise<string[]> {
  const wrong: string[] = [];
  const expected = [...journal.values()].reduce((sum, nano) => sum + nano, 0);
  const check = (name: string, { calls: count, costNano }: UsageSums): void => {
    if (count !== calls || costNano !== expected) wrong.push(`${name}: ${count} calls of ${costNano} nano-dollars, not ${calls} of ${expected}`);
  };
  const byProvider = await db.read(usageReport, everything(startMs, nowMs, ['provider']));
  check('all providers', byProvider.totals);
  for (const { key1, costNano } of byProvider.rows)
    if (costNano !== journal.get(key1 ?? '')) wrong.push(`${key1}: ${costNano} nano-dollars, not ${journal.get(key1 ?? '')}`);
  check('all conversations', (await db.search(usageReport, everything(startMs, nowMs, ['conversation']))).totals);
  return wrong;
}

/** Nothing may be older than it is kept, by a day in which it was not due yet. */
function wrongAges(kept: readonly { readonly name: string; readonly days: number }[], oldestDays: Readonly<Record<string, number>>): string[] {
  return kept.flatMap(({ name, days }) =>
    (oldestDays[name] ?? 0) <= days + 1.1 ? [] : [`${name} of ${oldestDays[name]} days ago, kept for ${days}`],
  );
}
