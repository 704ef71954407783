import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { auditMigrations } from '../../../../kernel/db/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { operation } from '../../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../../kernel/db/sqlite/inline.ts';
import { type Fork, forkConversation } from '../changes/fork-store.ts';
import { indexMessages } from './index-store.ts';
import { sessionMigrations } from '../migrations.ts';
import { eraseMessages } from '../changes/reset-store.ts';
import { maxScanned, type MessageSearch, searchMessages } from './search-store.ts';
import { addMessages, archiveConversation } from '../store.ts';
import { parseTextQuery } from './terms.ts';

const add = operation('test.add', addMessages);
const archive = operation('test.archive', archiveConversation);
const erase = operation('test.erase', async (tx, input: { readonly ref: string }) => (await eraseMessages(tx, input.ref))?.erased);
/** Moves the id of the newest message below all others, like that of a writer that took it first and committed last. */
const lowerIds = operation('test.lowerIds', (tx) =>
  tx.build((from, sql) =>
    from
      .updateTable('message')
      .set({ id: sql<number>`-id` })
      .where(sql<boolean>`id = (select max(id) from message)`),
  ),
);
const operations = [add, lowerIds, archive, erase, forkConversation, indexMessages, searchMessages];
const audit = { id: 'au_1', atMs: 1, principalId: 'p', action: 'a', classification: 'mutate' as const, outcome: 'success' as const, traceId: 't' };

let db: Db;
let auditCount = 0;
beforeEach(async () => {
  db = await openInlineDb({ migrations: [...auditMigrations, ...sessionMigrations], operations });
});
afterEach(() => db[Symbol.asyncDispose]());

interface Said {
  readonly agentId?: string;
  readonly principalId?: string;
  readonly sessionKey?: string;
}

const say = (ref: string, texts: readonly string[], { agentId = 'default', principalId = 'token:a', sessionKey = 'a:b' }: Said = {}) =>
  db.write(add, {
    ref,
    agentId,
    principalId,
    sessionKey,
    turnId: 'tn_1',
    steps: 1,
    toolCalls: 0,
    inputTokens: 1,
    outputTokens: 1,
    costNano: 0,
    atMs: 1,
    messages: texts.map((content, index) => ({
      role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content,
      toolJson: null,
      attachmentsJson: null,
      createdAtMs: 1,
    })),
  });

const nextAudit = () => ({ ...audit, id: `au_${++auditCount}` });

async function find(query: string, changes: Partial<MessageSearch> = {}) {
  const text = parseTextQuery(query);
  if (text === undefined) throw new Error('a query without words');
  return db.read(searchMessages, { text, principalId: null, agentIds: null, role: null, kind: null, limit: 50, ...changes });
}
const places = async (query: string, changes?: Partial<MessageSearch>) =>
  (await find(query, changes)).hits.map(({ ref, seq }) => `${ref}:${seq}`).toSorted();
const index = () => db.write(indexMessages, { maxRows: 1000, maxBytes: 1_000_000 });

describe.each([
  ['indexed', index],
  ['not indexed yet', async () => {}],
])('%s', (_state, settle) => {
  test('finds words in any form and phrases, and nothing else', async () => {
    await say('cv_1', ['We deployed the gate yesterday', 'The gate was deployed by Ada']);
    await say('cv_2', ['Café on the corner', 'part a64656661756c740']);
    await settle();
    expect(await places('deploying')).toEqual(['cv_1:1', 'cv_1:2']);
    expect(await places('"the gate" yesterday')).toEqual(['cv_1:1']);
    expect(await places('"gate the"')).toEqual([]);
    expect(await places('CAFE')).toEqual(['cv_2:1']);
    expect(await places('gate corner')).toEqual([]);
  });

  test('a search stays within principal, agent, role and kind', async () => {
    await say('cv_1', ['needle', 'needle']);
    await say('cv_2', ['needle'], { principalId: 'token:b' });
    await say('cv_3', ['needle'], { agentId: 'other', sessionKey: 'a:b:c' });
    // Owners whose names share a prefix, or contain token separators.
    await say('cv_4', ['needle'], { principalId: 'token:a0 ptoken:b' });
    await settle();
    expect(await places('needle')).toEqual(['cv_1:1', 'cv_1:2', 'cv_2:1', 'cv_3:1', 'cv_4:1']);
    expect(await places('needle', { principalId: 'token:a' })).toEqual(['cv_1:1', 'cv_1:2', 'cv_3:1']);
    expect(await places('needle', { principalId: 'token:b' })).toEqual(['cv_2:1']);
    expect(await places('needle', { principalId: 'token:a', agentIds: ['other', 'none'] })).toEqual(['cv_3:1']);
    expect(await places('needle', { agentIds: [] })).toEqual([]);
    expect(await places('needle', { role: 'assistant' })).toEqual(['cv_1:2']);
    expect(await places('needle', { kind: 'group' })).toEqual(['cv_3:1']);
    expect(await places('"needle" part')).toEqual([]);
  });

  test('erased or deleted messages are not found, and new messages that reuse their ids are', async () => {
    await say('cv_1', ['needle one', 'needle two']);
    await say('cv_2', ['needle three', 'needle four']);
    await settle();
    expect(await db.write(erase, { ref: 'cv_2' })).toBe(2);
    expect(await places('needle')).toEqual(['cv_1:1', 'cv_1:2']);
    // The ids of the newest rows are free again.
    await say('cv_3', ['haystack', 'needle five']);
    await settle();
    expect(await places('needle')).toEqual(['cv_1:1', 'cv_1:2', 'cv_3:2']);
    expect(await places('three')).toEqual([]);
    await db.write(archive, { ref: 'cv_1', archiveId: 'ar_1', atMs: 2, audit: nextAudit() });
    expect(await places('needle')).toEqual(['cv_3:2']);
    expect(await db.write(erase, { ref: 'cv_2' })).toBe(0);
    expect(await db.write(erase, { ref: 'cv_9' })).toBeUndefined();
  });

  test('a fork is found separately', async () => {
    await say('cv_1', ['needle one', 'needle two']);
    await settle();
    const fork: Fork = { sourceRef: 'cv_1', toSeq: 1, ref: 'cv_2', principalId: 'token:b', sessionKey: 'x:y', atMs: 2, audit: nextAudit() };
    await db.write(forkConversation, fork);
    await settle();
    expect(await places('needle')).toEqual(['cv_1:1', 'cv_1:2', 'cv_2:1']);
    expect(await places('needle', { principalId: 'token:b' })).toEqual(['cv_2:1']);
  });
});

test('index and scan results are merged, newest and best first, with a total', async () => {
  await say('cv_1', ['needle and much more than that, which is next to it here', 'needle needle']);
  await index();
  await say('cv_2', ['a needle, in some more words, not yet indexed']);
  const { hits, total, more, behind } = await find('needle', { limit: 2 });
  expect(hits.map(({ ref, seq }) => `${ref}:${seq}`)).toEqual(['cv_1:2', 'cv_2:1']);
  expect({ total, more, behind }).toEqual({ total: 3, more: false, behind: false });
});

test('a common word is counted up to a limit; messages beyond the scan are reported until they are indexed, in batches', async () => {
  for (let turn = 0; turn < 15; turn++)
    await say(
      'cv_1',
      Array.from({ length: 100 }, (_, i) => `needle ${turn * 100 + i}`),
    );
  expect(await find('needle')).toMatchObject({ total: maxScanned, behind: true });
  const small = { maxRows: 400, maxBytes: 4_000 };
  let rows = 0;
  for (let more = true; more;) {
    const batch = await db.write(indexMessages, small);
    expect(batch.rows).toBeLessThanOrEqual(400);
    rows += batch.rows;
    ({ more } = batch);
  }
  expect(rows).toBe(1500);
  expect(await find('needle')).toMatchObject({ total: 1000, more: true, behind: false });
  expect(await places('1234')).toEqual(['cv_1:1235']);
});

test('a hit after the head of a long message is found and shown', async () => {
  await say('cv_1', [`${'filler '.repeat(5000)}needle at the end`]);
  await index();
  const { hits } = await find('needle');
  expect(hits[0]?.snippet.text).toMatch(/needle at the end$/);
});

test('a message that becomes visible after others with higher ids is indexed', async () => {
  await say('cv_1', ['walrus one']);
  await say('cv_2', ['walrus two']);
  await index();
  await say('cv_1', ['walrus three']);
  await db.write(lowerIds, undefined);
  expect(await places('walrus')).toEqual(['cv_1:1', 'cv_1:2', 'cv_2:1']);
  expect(await index()).toEqual({ rows: 1, more: false });
  expect(await places('walrus')).toEqual(['cv_1:1', 'cv_1:2', 'cv_2:1']);
  expect(await index()).toEqual({ rows: 0, more: false });
});
