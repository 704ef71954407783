import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { operation } from '../../../../kernel/db/operation.ts';
import { forgetConversationMemories, removeMemory } from './store.ts';
import { hashingEmbed, openMemory, untilEmbedded } from '../testing/open-memory.ts';

const forget = operation('test.forget', forgetConversationMemories);
const remove = operation('test.remove', async (tx, { id }: { readonly id: string }) => removeMemory(tx, id));
const reword = operation(
  'test.reword',
  async (tx, { id, content, atMs }: { readonly id: string; readonly content: string; readonly atMs: number }) => {
    await tx.build((db) => db.updateTable('memory').set({ content, updatedAtMs: atMs }).where('id', '=', id));
  },
);
const leftovers = operation('test.leftovers', async (tx) => {
  const counts: Record<string, number> = {};
  for (const table of ['memoryFts', 'memoryVector', 'memorySign', 'memorySource'] as const)
    counts[table] = (await tx.build((db, sql) => db.selectFrom(table).select(sql`1`.as('one')))).length;
  return counts;
});

const open = () => openMemory({ clock: createStepClock(), operations: [forget, remove, reword, leftovers] });

test('deleting an entry deletes its vector, its terms and its citations', async () => {
  await using memory = await open();
  const source = await memory.add('the source');
  const derived = await memory.add('the derived one', { cites: [{ sourceId: source }] });
  await untilEmbedded(memory);
  expect(await memory.db.write(remove, { id: derived })).toBe(true);
  expect(await memory.db.write(remove, { id: derived })).toBe(false);
  expect(await memory.db.read(leftovers, {})).toEqual({ memoryFts: 1, memoryVector: 1, memorySign: 1, memorySource: 0 });
  expect(await memory.find('derived')).toEqual(['the source']);
});

test('a purge deletes derived memories of several conversations entirely, with all their index entries', async () => {
  await using memory = await open();
  const [one, two] = ['1', '2'].map((digit) => `cv_${digit.repeat(43)}`) as [string, string];
  const raw = await memory.add('raw of one', { source: { who: 'default', conversationRef: one } });
  const other = await memory.add('raw of two', { source: { who: 'default', conversationRef: two } });
  await memory.add('derived from both', {
    cites: [
      { sourceId: raw, conversationRef: one },
      { sourceId: other, conversationRef: two },
    ],
  });
  await untilEmbedded(memory);
  const forgotten = await memory.db.write(forget, { conversationRef: one, purgeDerived: true });
  expect(forgotten).toEqual({ memoriesDeleted: 1, derivedDeleted: 1, derivedUnlinked: 0 });
  expect(await memory.db.read(leftovers, {})).toEqual({ memoryFts: 1, memoryVector: 1, memorySign: 1, memorySource: 0 });
});

test('a new text gets another vector, and is found at once where the old one no longer is', async () => {
  // The queue may still be looking for more when the new text comes.
  const mayEmbed = Promise.withResolvers<void>();
  await using memory = await openMemory({
    clock: createStepClock(),
    operations: [reword],
    embed: async (work) => {
      if (work.texts.some((text) => text.includes('on friday'))) await mayEmbed.promise;
      return hashingEmbed(work);
    },
  });
  const id = await memory.add('the meeting is on monday');
  await untilEmbedded(memory);
  await memory.db.write(reword, { id, content: 'the meeting is on friday', atMs: 5 });
  expect((await memory.explain('friday'))[0]?.explain).toEqual({ textRank: 1 });
  expect((await memory.explain('monday')).map(({ explain }) => explain.textRank)).not.toContain(1);
  mayEmbed.resolve();
  memory.stored('default');
  await untilEmbedded(memory);
  expect((await memory.explain('friday'))[0]?.explain).toMatchObject({ textRank: 1, vectorRank: 1 });
});
