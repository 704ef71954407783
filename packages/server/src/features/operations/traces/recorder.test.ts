import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import { makeRecord } from '../diagnosis/testing/records.ts';
import { traceMigrations } from './migrations.ts';
import { fromLines, toLines, toRow } from './record-row.ts';
import { TraceRecorder } from './recorder.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { appendBatch, expandBatch, findRecords } from './store.ts';

const countRows = operation(
  'test.count',
  async (tx, { ids }: { readonly ids: readonly string[] }) =>
    (await tx.build<{ id: string }>((on) => on.selectFrom('traceRecord').select('id').where('id', 'in', ids))).length,
);

let db: Db;
let written: string[];
let isRefused: boolean;
let clock: StepClock;

beforeEach(async () => {
  db = await openInlineDb({ operations: [appendBatch, expandBatch, findRecords, countRows], migrations: traceMigrations });
  written = [];
  clock = createStepClock();
  isRefused = false;
});
afterEach(() => db[Symbol.asyncDispose]());

const open = () =>
  new TraceRecorder({
    clock,
    log: silentLog,
    db: {
      telemetry(operation, input) {
        if (isRefused) return Promise.reject(new Error('the disk is full'));
        written.push(operation.name);
        return db.telemetry(operation, input);
      },
    },
  });
const found = (...records: readonly { readonly id: string }[]) => db.read(countRows, { ids: records.map(({ id }) => id) });

test('many records are one write, become rows behind the turns, and are found once', async () => {
  const recorder = open();
  const records = Array.from({ length: 64 }, () => makeRecord());
  for (const one of records) recorder.push(one);
  await recorder.write();
  expect(written).toEqual(['traces.append']);
  clock.advance(249);
  expect(await found(...records)).toBe(0);
  clock.advance(1);
  await expect.poll(() => found(...records)).toBe(64);
});

test('batches become rows while work continues, once a reader would wait for too many', async () => {
  const recorder = open();
  const records = Array.from({ length: 66 * 64 }, () => makeRecord({ rootRunId: 'root-1', costNano: null, sessionKey: '\0"\\\nbreak:web' }));
  for (let first = 0; first < records.length; first += 64) {
    for (const one of records.slice(first, first + 64)) recorder.push(one);
    await recorder.write();
  }
  clock.advance(20);
  await expect.poll(() => written.filter((name) => name === 'traces.expand').length).toBe(4);
  const [first, ...others] = records.slice(0, 4 * 64).map((record) => ({ ...toRow(record), sessionKey: '\ufffd"\\\nbreak:web' }));
  expect((await db.read(findRecords, { ref: first?.id ?? '' })).rows).toEqual([first, ...others]);
  // As many wait as may, until nothing is recorded for a while.
  clock.advance(200);
  expect(await found(...records)).toBe(4 * 64);
  clock.advance(30);
  await expect.poll(() => written.filter((name) => name === 'traces.expand').length).toBe(8);
});

test('a reader finds what was pushed before, also what an earlier process has left', async () => {
  const first = open();
  const left = makeRecord();
  first.push(left);
  await first.end();
  expect(written).toEqual(['traces.append']);
  const second = open();
  const own = makeRecord();
  second.push(own);
  await second.flush();
  expect(await found(left, own)).toBe(2);
});

test('a batch that was written twice, because an answer was lost, is kept once', async () => {
  const record = makeRecord();
  for (let time = 0; time < 2; time += 1) await db.telemetry(appendBatch, { records: JSON.stringify(record) });
  await open().flush();
  expect(await found(record)).toBe(1);
});

test('while the database refuses writes the newest records are kept, and stored when it accepts them', async () => {
  const recorder = open();
  isRefused = true;
  const records = Array.from({ length: 2_100 }, () => makeRecord());
  for (const one of records) recorder.push(one);
  await recorder.flush();
  isRefused = false;
  await recorder.flush();
  expect([await found(...records.slice(0, 52)), await found(...records.slice(52))]).toEqual([0, 2_048]);
  expect(written.filter((name) => name === 'traces.append')).toHaveLength(32);
});

test('a batch that was written before an update becomes rows, next to new ones', async () => {
  const recorder = open();
  const [before, after] = [makeRecord(), makeRecord({ rootRunId: 'root-1', costNano: null, sessionKey: 'line\nbreak:web' })];
  await db.telemetry(appendBatch, { records: JSON.stringify(before) });
  recorder.push(after);
  expect(await recorder.flush()).toBe(true);
  expect(await found(before, after)).toBe(2);
  const [row] = fromLines(toLines(after));
  expect(row).toEqual(toRow(after));
  isRefused = true;
  recorder.push(makeRecord());
  expect(await recorder.flush()).toBe(false);
});
