import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../../../kernel/app-error.ts';
import { hashingVector } from '../../../../llm/hashing-embedder.ts';
import { ModelError } from '../../../../llm/model.ts';
import { removeMemory } from '../entries/store.ts';
import { operation } from '../../../../kernel/db/operation.ts';
import { adminCall, hang, hashingEmbed, type OpenedMemory, openMemory, pendingOf, untilEmbedded } from '../testing/open-memory.ts';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-memory-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const embeddedOf = async (memory: OpenedMemory) => (await memory.methods['memory.stats']({}, adminCall())).embeddedEntries;
const vectorRank = async (memory: OpenedMemory, text: string) => (await memory.explain(text))[0]?.explain.vectorRank;

test('entries without a vector at a stop are embedded after the next start', async () => {
  const clock = createStepClock();
  {
    await using memory = await openMemory({ clock, dataDir, embed: hang });
    await memory.add('the well is deep');
    await memory.add('the well is old');
  }
  await using memory = await openMemory({ clock, dataDir });
  expect(await pendingOf(memory)).toBe(2);
  clock.advance(2_000);
  await untilEmbedded(memory);
  expect(await vectorRank(memory, 'deep well')).toBe(1);
});

test('a new embedder embeds everything again, while search uses terms and the finished vectors', async () => {
  const clock = createStepClock();
  {
    await using memory = await openMemory({ clock, dataDir, model: 'first' });
    for (let n = 0; n < 40; n += 1) await memory.add(`the well number ${n}`);
    await untilEmbedded(memory);
  }
  let batches = 0;
  const gates = Array.from({ length: 2 }, () => Promise.withResolvers<void>());
  await using memory = await openMemory({
    clock,
    dataDir,
    model: 'second',
    async embed(work) {
      if (work.texts[0]?.startsWith('the well number ') === true) await gates[batches++]?.promise;
      return hashingEmbed(work);
    },
  });
  clock.advance(2_000);
  await expect.poll(() => batches).toBe(1);
  // Vectors of the first model mean nothing to the second.
  expect(await vectorRank(memory, 'well number 7')).toBeUndefined();
  expect(await memory.find('well number 7')).toHaveLength(10);
  gates[0]?.resolve();
  await expect.poll(() => batches).toBe(2);
  expect(await embeddedOf(memory)).toBe(32);
  expect(await vectorRank(memory, 'well number 7')).toBe(1);
  gates[1]?.resolve();
  await expect.poll(() => embeddedOf(memory)).toBe(40);
});

test('after a failure it pauses, longer each time, and continues on its own', async () => {
  const clock = createStepClock();
  let asked = 0;
  await using memory = await openMemory({
    clock,
    embed: (work) => (++asked <= 2 ? Promise.reject(new ModelError('overloaded', 'later')) : hashingEmbed(work)),
  });
  await memory.add('patience');
  await expect.poll(() => asked).toBe(1);
  clock.advance(999);
  await memory.add('and more of it');
  expect(asked).toBe(1);
  clock.advance(1);
  await expect.poll(() => asked).toBe(2);
  await expect.poll(() => (clock.advance(500), pendingOf(memory)), { interval: 5 }).toBe(0);
  expect(asked).toBeGreaterThanOrEqual(3);
});

test('a spent budget makes it wait for as long as the budget says', async () => {
  const clock = createStepClock();
  let asked = 0;
  await using memory = await openMemory({
    clock,
    embed: (work) => (++asked === 1 ? Promise.reject(new AppError('rate_limited', 'budget spent', { retryAfterMs: 60_000 })) : hashingEmbed(work)),
  });
  await memory.add('thrift');
  await expect.poll(() => asked).toBe(1);
  // The failure must arrive before the clock moves.
  await new Promise(setImmediate);
  clock.advance(59_999);
  await new Promise(setImmediate);
  expect(asked).toBe(1);
  await expect.poll(() => (clock.advance(1), pendingOf(memory)), { interval: 5 }).toBe(0);
  // A budget says nothing about the embedder.
  expect((await memory.methods['memory.embeddingCache']({}, adminCall())).circuitBreaker.state).toBe('closed');
});

test('an entry that the embedder refuses is skipped, and does not block the others', async () => {
  await using memory = await openMemory({
    clock: createStepClock(),
    embed: (work) => (work.texts.some((text) => text.includes('poison')) ? Promise.reject(new ModelError('bad_request', 'no')) : hashingEmbed(work)),
  });
  await memory.add('a well');
  await memory.add('poison in the well');
  await memory.add('another well');
  await untilEmbedded(memory);
  expect(await embeddedOf(memory)).toBe(2);
  expect(await memory.find('poison')).toEqual(expect.arrayContaining(['poison in the well']));
});

test('an entry that is deleted while it is embedded leaves no vector behind', async () => {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const remove = operation('test.remove', async (tx, { id }: { readonly id: string }) => removeMemory(tx, id));
  const countVectors = operation(
    'test.vectors',
    async (tx) => (await tx.build<{ seq: number }>((db) => db.selectFrom('memoryVector').select('seq'))).length,
  );
  await using memory = await openMemory({
    clock: createStepClock(),
    operations: [remove, countVectors],
    async embed(work) {
      asked += 1;
      await gate.promise;
      return hashingEmbed(work);
    },
  });
  const id = await memory.add('a passing thought');
  await expect.poll(() => asked).toBe(1);
  expect(await memory.db.write(remove, { id })).toBe(true);
  await memory.add('a lasting thought');
  gate.resolve();
  await untilEmbedded(memory);
  expect(await memory.db.read(countVectors, {})).toBe(1);
});

test('an agent without budget does not block the entries of others', async () => {
  const clock = createStepClock();
  await using memory = await openMemory({
    clock,
    embed: (work) =>
      work.agentId === 'poor' ? Promise.reject(new AppError('rate_limited', 'budget spent', { retryAfterMs: 60_000 })) : hashingEmbed(work),
  });
  await memory.add('first, and not paid for', { agentId: 'poor' });
  await memory.add('second');
  await expect.poll(() => embeddedOf(memory)).toBe(1);
  expect(await pendingOf(memory)).toBe(1);
});

test('vectors of another length under the same name embed everything again, once the length is known', async () => {
  const clock = createStepClock();
  {
    await using memory = await openMemory({ clock, dataDir });
    await memory.add('the well is deep');
    await untilEmbedded(memory);
    await memory.find('a question that is kept');
  }
  const shorter: Parameters<typeof openMemory>[0]['embed'] = async ({ texts }) => ({
    vectors: texts.map((text) => hashingVector(text, 128)),
    model: 'hashing',
    tokens: 1,
  });
  await using memory = await openMemory({ clock, dataDir, embed: shorter });
  clock.advance(2_000);
  await memory.find('deep well');
  await expect.poll(() => vectorRank(memory, 'deep well')).toBe(1);
  // Cached vectors of the earlier length are not used any more.
  expect(await vectorRank(memory, 'a question that is kept')).toBe(1);
});

test('an embedder whose vectors keep changing their length is abandoned, not paid for without end', async () => {
  const clock = createStepClock();
  let asked = 0;
  await using memory = await openMemory({
    clock,
    async embed({ texts }) {
      const dimensions = asked++ % 2 === 0 ? 128 : 256;
      return { vectors: texts.map((text) => hashingVector(text, dimensions)), model: 'hashing', tokens: 1 };
    },
  });
  await memory.add('one', { principalId: 'token:one' });
  await memory.add('two', { principalId: 'token:two' });
  await memory.add('three', { principalId: 'token:three' });
  await expect.poll(() => asked).toBeGreaterThan(2);
  // The queue would continue between these calls.
  for (let round = 0; round < 50; round += 1) await pendingOf(memory);
  expect(asked).toBeLessThan(10);
});

test('a model does not use vectors of another one whose name it is a prefix of', async () => {
  const clock = createStepClock();
  {
    await using memory = await openMemory({ clock, dataDir, model: 'embed/large' });
    await memory.add('the well is deep');
    await untilEmbedded(memory);
  }
  await using memory = await openMemory({ clock, dataDir, model: 'embed' });
  expect(await pendingOf(memory)).toBe(1);
  clock.advance(2_000);
  await expect.poll(() => embeddedOf(memory)).toBe(1);
  expect(await vectorRank(memory, 'deep well')).toBe(1);
});
