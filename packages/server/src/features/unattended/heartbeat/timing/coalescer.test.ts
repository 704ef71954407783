import { createStepClock, type StepClock } from '@gatehouse/testkit';
import type { EventKind } from '@gatehouse/contract';
import { beforeEach, describe, expect, test } from 'vitest';
import { createEventBus } from '../../../../kernel/event-bus.ts';
import type { WakeReason } from '../api.ts';
import { Coalescer, type Occurrence } from './coalescer.ts';

let clock: StepClock;
let coalescer: Coalescer;
let started: Occurrence[];
let events: { kind: EventKind; payload: object }[];
const busy = new Set<string>();
const backoffs = new Map<string, number>();
beforeEach(() => {
  clock = createStepClock();
  started = [];
  events = [];
  busy.clear();
  backoffs.clear();
  const bus = createEventBus((error) => {
    throw error;
  });
  bus.listen('all', ({ kind, payload }) => events.push({ kind, payload }));
  coalescer = new Coalescer({
    clock,
    bus,
    isBusy: (agentId) => busy.has(agentId),
    backoffUntil: (agentId) => backoffs.get(agentId) ?? null,
    start: (occurrence) => started.push(occurrence),
    changed: () => coalescer.run(),
  });
});

const wake = (reason: WakeReason, over: Partial<Parameters<Coalescer['wake']>[0]> = {}) =>
  coalescer.wake({ agentId: 'a', reason, lane: 'normal', bypassesSpacing: false, dueAtMs: clock.now(), ...over });
const step = (ms: number) => (clock.advance(ms), coalescer.run());
/** Ends the last started beat after a model call. */
function beat() {
  const last = started.at(-1);
  if (last?.agentId === undefined) throw new Error('nothing runs');
  coalescer.began(last.agentId, last.startedAtMs);
  coalescer.end(last, { status: 'settled', eventCount: 0 });
}
const kinds = () => events.map(({ kind }) => kind.replace('scheduler:heartbeat_wake_', ''));
const deferrals = () => events.flatMap(({ payload }) => ('nextEligibleAtMs' in payload ? [payload] : []));

describe('concurrent requests', () => {
  test('form one beat after a quarter of a second, under one correlation id from admission to end', () => {
    const first = wake('wake');
    expect(first).toMatchObject({ status: 'accepted', accepted: true, coalesced: false, disposition: 'new_occurrence', retainedReason: 'wake' });
    clock.advance(100);
    expect(wake('hook')).toEqual({
      status: 'coalesced',
      accepted: false,
      coalesced: true,
      correlationId: first?.correlationId,
      lane: 'normal',
      retainedReason: 'wake',
    });
    expect(step(149)).toBe(clock.now() + 1);
    expect(started).toEqual([]);
    step(1);
    expect(started).toMatchObject([{ agentId: 'a', reason: 'wake' }]);
    beat();
    expect(kinds()).toEqual(['admitted', 'terminal']);
    expect(new Set(events.map(({ payload }) => 'correlationId' in payload && payload.correlationId))).toEqual(new Set([first?.correlationId]));
  });

  test.each([
    ['interval', 'manual', true],
    ['interval', 'task', true],
    ['manual', 'hook', false],
    ['hook', 'cron', true],
    ['cron', 'exec-event', false],
    ['cron', 'interval', false],
    ['exec-event', 'task', true],
    ['task', 'cron', false],
  ] as const)('%s, then %s: raised is %s', (before, after, raised) => {
    wake(before, { dueAtMs: clock.now() + 60_000 });
    expect(wake(after, { dueAtMs: clock.now() + 60_000 })).toMatchObject(
      raised
        ? { status: 'accepted', disposition: 'occurrence_upgraded', retainedReason: after }
        : { status: 'coalesced', accepted: false, retainedReason: before },
    );
  });

  test('are raised by an earlier time and by bypassSpacing', () => {
    wake('cron', { dueAtMs: clock.now() + 60_000 });
    expect(wake('interval', { dueAtMs: clock.now() + 30_000 })).toMatchObject({ disposition: 'occurrence_upgraded', retainedReason: 'interval' });
    expect(wake('interval', { dueAtMs: clock.now() + 90_000, bypassesSpacing: true })).toMatchObject({ disposition: 'occurrence_upgraded' });
    step(29_999);
    expect(started).toEqual([]);
    step(1);
    expect(started).toHaveLength(1);
  });

  test('are separate by agent and lane', () => {
    const ids = [wake('wake'), wake('wake', { agentId: 'b' }), wake('task', { lane: 'task' })].map((admitted) => admitted?.correlationId);
    expect(new Set(ids).size).toBe(3);
    step(250);
    // One beat of an agent at a time, the more urgent first.
    expect(started.map(({ agentId, lane }) => `${agentId} ${lane}`)).toEqual(['a task', 'b normal']);
  });
});

describe('an early request', () => {
  test('waits until 30 s have passed since the last beat that called a model', () => {
    wake('wake');
    step(250);
    beat();
    wake('wake');
    step(250);
    expect(started).toHaveLength(1);
    expect(deferrals()).toMatchObject([{ reason: 'spacing_deferred', nextEligibleAtMs: clock.now() + 29_750 }]);
    step(29_749);
    expect(started).toHaveLength(1);
    step(1);
    expect(started).toHaveLength(2);
    expect(deferrals()).toHaveLength(1);
  });

  test('does not wait after a beat that called none', () => {
    wake('interval');
    step(0);
    const [skipped] = started;
    if (skipped !== undefined) coalescer.end(skipped, { status: 'skipped', eventCount: 0 });
    wake('hook');
    step(250);
    expect(started).toHaveLength(2);
  });

  test('runs immediately when allowed, but at most five times a minute', () => {
    for (let n = 0; n < 5; n += 1) {
      wake('cron', { bypassesSpacing: true });
      step(250);
      beat();
    }
    expect(started).toHaveLength(5);
    wake('cron', { bypassesSpacing: true });
    step(250);
    expect(started).toHaveLength(5);
    expect(deferrals()).toMatchObject([{ reason: 'flood_deferred' }]);
    step(60_000 - 6 * 250);
    expect(started).toHaveLength(5);
    step(250);
    expect(started).toHaveLength(6);
  });

  test('waits while a beat of the agent or a turn in its conversation runs, and is reported once', () => {
    busy.add('a');
    wake('wake');
    for (let n = 0; n < 5; n += 1) step(1_000);
    expect(deferrals()).toMatchObject([{ reason: 'session_busy' }]);
    busy.clear();
    step(1_000);
    expect(started).toHaveLength(1);
    wake('cron', { bypassesSpacing: true });
    step(250);
    expect(started).toHaveLength(1);
    beat();
    expect(started).toHaveLength(2);
  });

  test('waits for the backoff unless triggered manually', () => {
    backoffs.set('a', clock.now() + 60_000);
    wake('cron', { bypassesSpacing: true });
    step(250);
    expect(deferrals()).toMatchObject([{ reason: 'backoff', nextEligibleAtMs: clock.now() + 59_750 }]);
    step(59_750);
    expect(started).toHaveLength(1);
    beat();
    backoffs.set('a', clock.now() + 60_000);
    clock.advance(30_000);
    wake('manual');
    step(250);
    expect(started).toHaveLength(2);
  });

  test('waits while the maximum number of beats run, then all run', () => {
    for (let n = 0; n < 100; n += 1) wake('wake', { agentId: `agent-${n}` });
    step(250);
    expect(started).toHaveLength(8);
    while (started.length < 100) beat();
    expect(new Set(started.map(({ agentId }) => agentId)).size).toBe(100);
  });
});

test('pending beats of an agent that is switched off are cancelled with a report', () => {
  wake('wake');
  wake('task', { lane: 'task' });
  wake('wake', { agentId: 'b' });
  clock.advance(100);
  coalescer.cancel('a', 'disabled');
  expect(events.slice(3)).toMatchObject([
    { payload: { status: 'cancelled_before_start', cancelReason: 'disabled', agentId: 'a', durationMs: 100, eventCount: 0 } },
    { payload: { status: 'cancelled_before_start', cancelReason: 'disabled', agentId: 'a', lane: 'task' } },
  ]);
  step(250);
  expect(started.map(({ agentId }) => agentId)).toEqual(['b']);
});

test('a backward clock step delays nothing beyond the usual wait', () => {
  wake('wake');
  step(250);
  coalescer.began('a', clock.now() + 7_200_000);
  const [first] = started;
  if (first !== undefined) coalescer.end(first, { status: 'settled', eventCount: 0 });
  wake('wake');
  step(250);
  expect(started).toHaveLength(2);
});
