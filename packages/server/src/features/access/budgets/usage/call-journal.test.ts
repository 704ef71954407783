import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CallJournal } from './call-journal.ts';
import { silentLog } from '../../../../kernel/log.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';

let dir: string;
const clock = createStepClock();
const late: string[] = [];
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'gatehouse-journal-'))));
afterEach(() => rmSync(dir, { recursive: true }));

const file = () => join(dir, 'calls');
const open = () => new CallJournal({ file: file(), clock, log: silentLog, bookLate: async ({ id }) => void late.push(id) });
const workOf = (id: string) => ({ id, agentId: 'a', principalId: 'p', conversationRef: null });
const call = (input: number, outcome: CallRecord['outcome'] = 'ok'): CallRecord => ({
  provider: 'p',
  modelId: 'm',
  operation: 'interactive',
  usage: { input, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false },
  cost: null,
  savedNano: null,
  latencyMs: 1,
  startedAtMs: 1,
  outcome,
});
const left = () => {
  using journal = open();
  return journal.left.map(({ id, calls, isInFlight }) => [id, calls.map(({ usage }) => usage.input), isInFlight]);
};

test('returns what was noted to the next process, and whether a call was running, without what a crash cut off', () => {
  // Not disposed: the process dies.
  const journal = open();
  const first = journal.open(workOf('tn_1'));
  first.begin();
  first.add(call(1));
  const second = journal.open(workOf('tn_2'));
  second.begin();
  second.add(call(2, 'error'));
  const third = journal.open(workOf('tn_3'));
  third.begin();
  third.add(call(3, 'error'));
  third.settle();
  appendFileSync(file(), '{"is":"made","of":{"id":"tn_4"');
  expect(left()).toEqual([
    ['tn_1', [1], false],
    ['tn_2', [2], true],
    ['tn_3', [3], false],
  ]);
});

test('returns the answer that is stored when its call is booked', () => {
  const part = { rootRunId: 'root', node: { graphId: 'gr', nodeId: 'b' }, summarizes: { graphId: 'gr', nodeId: 'a' } };
  const noted = open().open({ ...workOf('wk_1'), ...part });
  noted.add(call(1));
  noted.keep('In short.');
  using journal = open();
  expect(journal.left).toEqual([{ ...workOf('wk_1'), ...part, calls: [call(1)], isInFlight: false, answer: 'In short.' }]);
});

test('keeps how a turn began, in one line of its lines', () => {
  const turn = { conversationRef: 'cv', sessionKey: 'a:b', origin: 'rpc' as const, traceId: 't', startedAtMs: 1, bootId: 'boot' };
  const noted = open().open({ ...workOf('tn_1'), turn });
  noted.add(call(1));
  noted.add(call(2));
  expect(readFileSync(file(), 'utf8').split('sessionKey')).toHaveLength(2);
  using journal = open();
  expect(journal.left).toMatchObject([{ id: 'tn_1', turn, calls: [{}, {}] }]);
});

test('forgets what is booked: within a minute, and while others run once it is large', () => {
  using journal = open();
  const running = journal.open(workOf('tn_0'));
  running.add(call(0));
  for (let n = 1; n <= 5000; n += 1) {
    const turn = journal.open(workOf(`tn_${n}`));
    turn.add(call(n));
    turn.close();
  }
  expect(statSync(file()).size).toBeLessThan(1024 * 1024 + 500);
  expect(left()[0]).toEqual(['tn_0', [0], false]);
  clock.advance(60_001);
  running.close();
  expect(readFileSync(file(), 'utf8')).toBe('');
});

test('books a call that ends after its turn at once', async () => {
  using journal = open();
  const turn = journal.open(workOf('tn_9'));
  turn.close();
  turn.add(call(1));
  expect(left()).toEqual([['tn_9', [1], false]]);
  await Promise.resolve();
  expect(late).toEqual(['tn_9']);
});
