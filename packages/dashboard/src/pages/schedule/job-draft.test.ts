import { expect, test } from 'vitest';
import { DraftError } from '../../data/field-errors.ts';
import { addParams, draftOf, emptyDraft, type Job, scheduleOf, updateParams } from './job-draft.ts';

const job: Job = {
  id: 'cj_1',
  name: 'report',
  agentId: 'default',
  source: 'authored',
  schedule: { kind: 'every', everyMs: 5_400_000, anchorMs: 1_790_000_000_123 },
  lifecycle: { state: 'scheduled', nextRunAtMs: 1_790_005_400_123, consecutiveDependencyErrors: 0 },
  payload: { kind: 'agent_turn', message: 'What is due?', timeoutSeconds: 60 },
  sessionPolicy: { strategy: 'rolling', maxHistoryTurns: 3 },
  toolPolicy: { profile: 'coding', allow: ['web_search'], deny: [] },
  wakeGate: { script: 'true', language: 'ts', timeoutSeconds: 5 },
  maxConsecutiveDependencyErrors: 0,
};

test('sends no unchanged field, to the millisecond', () => {
  const draft = draftOf(job, 'UTC');
  expect(updateParams('cj_1', draft, draft)).toEqual({ jobId: 'cj_1' });
  expect(scheduleOf(draft)).toEqual({ kind: 'every', everyMs: 5_400_000, anchorMs: 1_790_000_000_123 });
  expect([draft.amount, draft.unit]).toEqual(['90', 'minutes']);
});

test('clears emptied fields and sends changed ones completely', () => {
  const before = draftOf(job, 'UTC');
  const after = { ...before, script: ' ', profile: '' as const, history: '', maxErrors: '', text: 'Say hello', deliveryTarget: '{"a":1}' };
  expect(updateParams('cj_1', before, after)).toEqual({
    jobId: 'cj_1',
    payload: { kind: 'agent_turn', message: 'Say hello', timeoutSeconds: 60 },
    sessionPolicy: { strategy: 'fresh' },
    deliveryTarget: { a: 1 },
    wakeGate: null,
    toolPolicy: null,
    maxConsecutiveDependencyErrors: null,
  });
});

test('writes each kind of schedule and payload in the format of the method', () => {
  const draft = { ...emptyDraft('default', 'Europe/Berlin'), name: ' x ', text: 'Hi' };
  expect(addParams(draft)).toEqual({
    name: 'x',
    agentId: 'default',
    schedule: { kind: 'cron', expr: '0 8 * * 1-5', tz: 'Europe/Berlin' },
    payload: { kind: 'agent_turn', message: 'Hi' },
  });
  expect(scheduleOf({ ...draft, kind: 'at', at: '2030-01-31T09:30', fold: 'later' })).toEqual({
    kind: 'at',
    at: '2030-01-31T09:30',
    tz: 'Europe/Berlin',
    fold: 'later',
  });
  expect(scheduleOf({ ...draft, kind: 'in', amount: '1.5', unit: 'hours' })).toEqual({ kind: 'in', seconds: 5400 });
  // Turn options are not sent with another payload.
  expect(addParams({ ...draft, does: 'heartbeat_event', wakeNow: true, script: 'true', history: '3', profile: 'full' })).toMatchObject({
    payload: { kind: 'heartbeat_event', text: 'Hi', wakeMode: 'now' },
  });
  expect(addParams({ ...draft, does: 'delivery', script: 'true', history: '3' }).wakeGate).toBeUndefined();
});

test('names the field that cannot be sent', () => {
  const draft = emptyDraft('default', 'UTC');
  for (const amount of ['', '0', '-1', 'x']) {
    const thrown = catchError(() => scheduleOf({ ...draft, kind: 'every', amount }));
    expect(thrown).toBeInstanceOf(DraftError);
    expect(thrown).toMatchObject({ path: 'schedule.everyMs' });
  }
  expect(catchError(() => addParams({ ...draft, deliveryTarget: '{' }))).toMatchObject({ path: 'deliveryTarget' });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}
