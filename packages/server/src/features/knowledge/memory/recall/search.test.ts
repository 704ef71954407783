import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { ModelError } from '../../../../llm/model.ts';
import { hang, hashingEmbed, openMemory, rpcCall, untilEmbedded } from '../testing/open-memory.ts';
import { parseTerms } from './text-query.ts';

test('a stored entry is found by its terms at once, before it has a vector', async () => {
  await using memory = await openMemory({
    clock: createStepClock(),
    embed: (work) => (work.texts[0] === 'harbour' ? hashingEmbed(work) : hang(work)),
  });
  await memory.add('The ferry leaves the harbour at six.');
  const [hit] = await memory.explain('harbour');
  expect(hit).toMatchObject({ entry: { content: 'The ferry leaves the harbour at six.' }, explain: { textRank: 1 } });
  expect(hit?.explain.vectorRank).toBeUndefined();
});

test('both lanes are fused, and the result explains each position', async () => {
  await using memory = await openMemory({ clock: createStepClock() });
  await memory.add('The ferry leaves the harbour at six.');
  await memory.add('Ferries are painted white.');
  await memory.add('Coffee is in the kitchen.');
  await untilEmbedded(memory);
  const found = await memory.explain('when does the ferry leave the harbour?');
  expect(found.map(({ entry }) => entry.content)).toEqual([
    'The ferry leaves the harbour at six.',
    'Ferries are painted white.',
    'Coffee is in the kitchen.',
  ]);
  expect(found[0]).toMatchObject({ score: 1, explain: { textRank: 1, vectorRank: 1 } });
  expect(found[0]?.explain.vectorSimilarity).toBeGreaterThan(0.3);
  // "ferries" and "ferry" have one stem.
  expect(found[1]?.explain.textRank).toBe(2);
  expect(found[2]?.explain).toEqual({ vectorRank: expect.any(Number), vectorSimilarity: expect.any(Number) });
  expect(await memory.find('when does the ferry leave the harbour?', { minScore: 0.99 })).toHaveLength(1);
});

test('a rare term counts for more than common ones, however many entries have those', async () => {
  await using memory = await openMemory({ clock: createStepClock(), embed: 'none' });
  await memory.add('zebra');
  for (let n = 0; n < 60; n += 1) await memory.add(`common notes about nothing number ${n}`);
  expect((await memory.find('common notes about zebra', { limit: 3 }))[0]).toBe('zebra');
});

test('an old entry with all of the terms is found among hundreds of newer ones with one of them', async () => {
  await using memory = await openMemory({ clock: createStepClock(), embed: 'none' });
  await memory.add('project status');
  await Promise.all(Array.from({ length: 1_100 }, (_, n) => memory.add(`${n % 2 === 0 ? 'project' : 'status'} ${n}`)));
  expect((await memory.find('project status', { limit: 3 }))[0]).toBe('project status');
});

test('filters apply inside the lanes: all matching entries are returned', async () => {
  await using memory = await openMemory({ clock: createStepClock() });
  for (let n = 0; n < 60; n += 1) await memory.add(`apple harvest ${n}`, { trustLevel: 'external' });
  await memory.add('apple harvest of ours', { tags: ['orchard', 'own'], memoryType: 'episodic' });
  for (let n = 0; n < 60; n += 1) await memory.add(`apple harvest again ${n}`, { agentId: 'other' });
  await untilEmbedded(memory);
  for (const filter of [{ trust: ['learned' as const] }, { types: ['episodic' as const] }, { tags: ['orchard'] }, { tags: ['orchard', 'own'] }])
    expect(await memory.find('apple harvest', { ...filter, limit: 5 }), JSON.stringify(filter)).toEqual(['apple harvest of ours']);
  expect(await memory.find('apple harvest', { tags: ['orchard', 'absent'] })).toEqual([]);
  expect(await memory.find('apple harvest', { trust: [] })).toEqual([]);
  expect(await memory.find('apple harvest', { agentId: 'other', limit: 100 })).toHaveLength(60);
});

test('an owner sees its own entries and those for everybody, whatever its name looks like', async () => {
  await using memory = await openMemory({ clock: createStepClock() });
  await memory.add('shared plan');
  await memory.add('plan of one', { principalId: 'token:one' });
  await memory.add('plan of two', { principalId: 'token:two' });
  await untilEmbedded(memory);
  const seen = async (principalId: string | null) => (await memory.find('plan', { principalId })).toSorted();
  expect(await seen('token:one')).toEqual(['plan of one', 'shared plan']);
  expect(await seen('token:two')).toEqual(['plan of two', 'shared plan']);
  expect(await seen('token:on')).toEqual(['shared plan']);
  expect(await seen('token:one OR token:two')).toEqual(['shared plan']);
  expect(await seen('")) OR body:("plan')).toEqual(['shared plan']);
  expect(await seen(null)).toHaveLength(3);
});

test('expired entries are gone at once, in both lanes', async () => {
  const clock = createStepClock();
  await using memory = await openMemory({ clock });
  await memory.add('the code of the safe is 1234', { expiresAtMs: clock.now() + 1_000 });
  await untilEmbedded(memory);
  expect(await memory.find('code of the safe')).toHaveLength(1);
  clock.advance(1_000);
  expect(await memory.find('code of the safe')).toEqual([]);
});

test('raw entries that a derived one absorbed are excluded on request', async () => {
  const clock = createStepClock();
  await using memory = await openMemory({ clock });
  const raw = await memory.add('likes tea in the morning');
  await memory.add('likes tea, above all in the morning', { cites: [{ sourceId: raw }] });
  await untilEmbedded(memory);
  expect(await memory.find('tea', { includeDerivedSources: true })).toHaveLength(2);
  const [derived] = await memory.explain('above all');
  expect(derived?.entry).toMatchObject({ proofCount: 1, sourceIds: [raw] });
});

test('no text of a query is parsed as syntax, and one of stop words alone is searched by meaning alone', async () => {
  await using memory = await openMemory({ clock: createStepClock() });
  await memory.add('plain words');
  await untilEmbedded(memory);
  for (const text of ['"', 'AND', 'NEAR(', 'body:*', 'part:a', '* OR plain', "'; DROP TABLE memory; --", 'plain^2', '-plain', '\u0000', '(((('])
    await expect(memory.find(text), text).resolves.toBeInstanceOf(Array);
  const [hit] = await memory.explain('what is it that you have?');
  expect(hit?.explain).toEqual({ vectorRank: 1, vectorSimilarity: expect.any(Number) });
  expect(parseTerms('What is THE Ferry–ferry, and "NOT" Žižek?').words.map(({ word }) => word)).toEqual(['ferry', 'žižek']);
  await using wordless = await openMemory({ clock: createStepClock(), embed: 'none' });
  await wordless.add('plain words');
  expect(await wordless.find('what is it?')).toEqual([]);
  expect(await wordless.find('plain?')).toEqual(['plain words']);
});

test('when the embedder fails, or takes too long, terms are still searched', async () => {
  const clock = createStepClock();
  let mode: 'ok' | 'fails' | 'hangs' = 'ok';
  let asked = 0;
  await using memory = await openMemory({
    clock,
    embed(work) {
      asked += 1;
      if (mode === 'fails') return Promise.reject(new ModelError('server', 'down'));
      return mode === 'hangs' ? hang(work) : hashingEmbed(work);
    },
  });
  await memory.add('the lantern hangs by the gate');
  await untilEmbedded(memory);
  mode = 'fails';
  for (let n = 0; n < 5; n += 1) expect(await memory.find(`lantern ${n}`)).toEqual(['the lantern hangs by the gate']);
  const state = async () => (await memory.methods['memory.embeddingCache']({}, rpcCall())).circuitBreaker.state;
  // Five consecutive failures: it is left alone, and then tried once.
  expect(await state()).toBe('open');
  const before = asked;
  expect(await memory.find('lantern')).toHaveLength(1);
  expect(asked).toBe(before);
  clock.advance(15_000);
  expect(await state()).toBe('halfOpen');
  mode = 'hangs';
  const waiting = memory.find('lantern by night');
  await expect.poll(() => asked).toBe(before + 1);
  clock.advance(1_500);
  expect(await waiting).toHaveLength(1);
});

test('a query is embedded once: the second time its vector comes from memory, after a restart from the database', async () => {
  const clock = createStepClock();
  let asked = 0;
  const embed = (work: Parameters<typeof hashingEmbed>[0]) => {
    asked += 1;
    return hashingEmbed(work);
  };
  await using memory = await openMemory({ clock, embed });
  await memory.find('where is the key?');
  await memory.find('where is the key?');
  expect(asked).toBe(1);
  const cache = await memory.methods['memory.embeddingCache']({}, rpcCall());
  expect(cache).toMatchObject({ enabled: true, provider: 'test/hashing', l1: { entries: 1, hits: 1, misses: 1, hitRate: 0.5 }, l2: { entries: 1 } });
  expect(cache).not.toHaveProperty('pendingEntries');
  // A user's message leaves no vector behind.
  await memory.find('a secret of mine', { keepVector: false });
  expect(await memory.methods['memory.embeddingCache']({}, rpcCall())).toMatchObject({ l1: { entries: 2 }, l2: { entries: 1 } });
});

test('a caller that cannot wait for the vector gets results by terms in time', async () => {
  const clock = createStepClock();
  let asked = 0;
  await using memory = await openMemory({ clock, embed: (work) => ((asked += 1), hang(work)) });
  await memory.add('the lantern hangs by the gate');
  await expect.poll(() => asked).toBe(1);
  const waiting = memory.find('lantern', { vectorWaitMs: 100 });
  await expect.poll(() => asked).toBe(2);
  clock.advance(100);
  expect(await waiting).toEqual(['the lantern hangs by the gate']);
});

test('the cache does not reveal whether somebody else asked the same before', async () => {
  await using memory = await openMemory({ clock: createStepClock() });
  const missesOf = async () => (await memory.methods['memory.embeddingCache']({}, rpcCall())).l1?.misses;
  await memory.find('a secret of Ada', { principalId: 'token:ada' });
  expect(await missesOf()).toBe(1);
  await memory.find('a secret of Ada', { principalId: 'token:bob' });
  expect(await missesOf()).toBe(2);
  await memory.find('a secret of Ada', { principalId: 'token:bob' });
  expect(await missesOf()).toBe(2);
});

test('the order of results reveals nothing about the memories of others', async () => {
  await using memory = await openMemory({ clock: createStepClock(), embed: 'none' });
  await memory.add('merger one', { principalId: 'token:bob' });
  await memory.add('dismissal two', { principalId: 'token:bob' });
  const order = () => memory.find('merger dismissal', { principalId: 'token:bob' });
  const before = await order();
  for (let n = 0; n < 20; n += 1) await memory.add(`the dismissal of number ${n}`, { principalId: 'token:ada' });
  expect(await order()).toEqual(before);
  for (let n = 0; n < 40; n += 1) await memory.add(`the merger with number ${n}`, { principalId: 'token:ada' });
  expect(await order()).toEqual(before);
});

test.each([
  ['İstanbul', 'The office in İstanbul opens at nine.'],
  ['istanbul', 'The office in İstanbul opens at nine.'],
  ['café', 'The cafe\u0301 is closed.'],
  ['cafe\u0301', 'The café is closed.'],
  ['हिन्दी', 'वह हिन्दी बोलती है'],
  ['МОСКВА', 'Москва далеко'],
  ['予定', '予定: 会議は三時'],
])('the word %s is found in “%s”', async (word, content) => {
  await using memory = await openMemory({ clock: createStepClock(), embed: 'none' });
  await memory.add(content);
  await memory.add('something else');
  expect(await memory.find(word)).toEqual([content]);
});
