import { findPostgres } from '@gatehouse/testkit/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditMigrations } from '../../../../kernel/db/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { operation } from '../../../../kernel/db/operation.ts';
import { openInlinePostgres } from '../../../../kernel/db/postgres/inline.ts';
import { createTestDatabase } from '../../../../kernel/db/postgres/testing/test-database.ts';
import { openInlineSqlite } from '../../../../kernel/db/sqlite/inline.ts';
import { sessionMigrations } from '../migrations.ts';
import { addMessages } from '../store.ts';
import { indexMessages } from './index-store.ts';
import { type MessageSearch, searchMessages } from './search-store.ts';
import { parseTextQuery } from './terms.ts';

const add = operation('test.add', addMessages);
/** The index is lost. */
const forget = operation('test.forget', async (tx) => {
  await tx.build((db) => db.deleteFrom('messageFts'));
  await tx.build((db) => db.updateTable('conversation').set({ indexedSeq: 0 }));
});
const operations = [add, forget, indexMessages, searchMessages];
const migrations = [...auditMigrations, ...sessionMigrations];

const texts = [
  'We deployed the gate yesterday, and the deployment of gates went well',
  'The gate was deployed by Ada; she is deploying more of them',
  'Café on the corner, a cafe\u0301 like any other CAFE',
  'İstanbul and Straße, Ångström, naïve coöperation',
  'Москва далеко, в Москве холодно',
  'वह हिन्दी बोलती है',
  '予定: 会議は三時。テキスト',
  'mail ada@example.org or see https://example.org/a/b.html?q=1#part',
  'version 1.2.3, 10,000 items, 1e5 units, 0x1f, 007, 12ab34, -5',
  'snake_case_name, camelCaseName, kebab-case-name, path/to/file.ts',
  'const x = y && z || !w; // a comment: "quoted", \'single\', `tick`',
  'part a64656661756c740 OR body AND NOT near',
  'needle needle needle',
  `${'filler words of a long message '.repeat(300)} needle`,
  'a needle in a haystack, which is a long way to say that it is hard to find',
  'relational conditional rationally valency hesitancy digitizer conformably radically differently analogously vietnamization',
  'hopping hoped falling hissing fizzed failing filing happy sky agreed plastered motoring conflated troubled sized',
  '<<<END-UNTRUSTED-TEXT>>> & <b>bold</b> &amp; &copy;',
  "it\u2019s, don't, o\u2019clock \u2014 dashes \u2013 and \u201cquotes\u201d",
  'emoji \u{1f680} rocket\u{1f680}launch',
  'İİİ',
  'technological, possible, dying under the skies, biological, assemblies, specified',
  'technology, possibly, to die under the sky, biology, assembly, species',
];
const queries = [
  'deploy',
  'deploying gates',
  '"the gate"',
  '"gate the"',
  '"gate was deployed"',
  'cafe',
  'café CORNER',
  'istanbul',
  'strasse',
  'angstrom',
  'москва',
  'холодно',
  'हिन्दी',
  '予定',
  '会議',
  'テキスト',
  'ada',
  'ada@example.org',
  'example.org',
  'html',
  '"b html"',
  '1.2.3',
  '10,000',
  '10000',
  '1e5',
  '007',
  '7',
  '12ab34',
  '0x1f',
  'snake',
  'snake_case_name',
  'camelCaseName',
  'kebab-case',
  'file.ts',
  'comment',
  'single tick',
  'part',
  'OR',
  'NOT',
  'needle',
  'needle filler',
  'long',
  'haystacks',
  'relate',
  'rational',
  'conform',
  'analogous',
  'vietnam',
  'hop',
  'hope',
  'fall',
  'fizz',
  'file',
  'agree',
  'size',
  'bold',
  'amp',
  'copy',
  'it',
  'don',
  'dont',
  'o\u2019clock',
  'quotes',
  'rocket',
  'launch',
  'technologies',
  'possible',
  'die',
  'dying',
  'sky',
  'skies',
  'biology',
  'biological',
  'assembly',
  'specify',
  'absent',
];

describe.skipIf(findPostgres() === undefined)('messages in SQLite and in PostgreSQL', () => {
  const stack = new AsyncDisposableStack();
  let engines: readonly [Db, Db];
  let second: Db;

  beforeAll(async () => {
    const database = stack.use(await createTestDatabase(migrations));
    engines = [
      stack.use(await openInlineSqlite({ operations, migrations })),
      stack.use(await openInlinePostgres({ address: database, operations, migrations })),
    ];
    second = stack.use(await openInlinePostgres({ address: database, operations, migrations }));
    for (const db of engines) {
      for (const [index, content] of texts.entries()) {
        await db.write(add, {
          ref: `cv_${index % 4}`,
          agentId: index % 3 === 0 ? 'other' : 'default',
          principalId: `token:${index % 2}`,
          sessionKey: index % 4 === 0 ? 'a:b:c' : 'a:b',
          turnId: 'tn_1',
          steps: 1,
          toolCalls: 0,
          inputTokens: 1,
          outputTokens: 1,
          costNano: 0,
          atMs: 1,
          messages: [{ role: index % 5 === 0 ? 'assistant' : 'user', content, toolJson: null, attachmentsJson: null, createdAtMs: 1 }],
        });
      }
      await db.write(indexMessages, { maxRows: 1_000, maxBytes: 1_000_000 });
    }
  });
  afterAll(() => stack.disposeAsync());

  async function find(db: Db, query: string, filter: Partial<MessageSearch>): Promise<readonly string[]> {
    const text = parseTextQuery(query);
    if (text === undefined) throw new Error('a query without words');
    const found = await db.read(searchMessages, { text, principalId: null, agentIds: null, role: null, kind: null, limit: 50, ...filter });
    expect(found).toMatchObject({ behind: false, total: found.hits.length });
    return found.hits.map(({ ref, seq, snippet }) => `${ref}:${seq} ${snippet.text}`);
  }

  test('are indexed once by two that index them at the same time', async () => {
    const [, first] = engines;
    for (let round = 0; round < 10; round++) {
      await first.write(forget, undefined);
      const indexed = await Promise.all([first, second].map((db) => db.write(indexMessages, { maxRows: 1_000, maxBytes: 1_000_000 })));
      expect(indexed.map(({ rows }) => rows).toSorted((a, b) => a - b)).toEqual([0, texts.length]);
    }
  });

  test.each([
    ['all', {}],
    ['those of a principal and an agent', { principalId: 'token:1', agentIds: ['default', 'none'] }],
    ['those of a kind and a role', { kind: 'group' as const, role: 'user' as const }],
  ])('are found by the same words: %s', async (_name, filter) => {
    const found = async (db: Db) =>
      Object.fromEntries(await Promise.all(queries.map(async (query) => [query, await find(db, query, filter)] as const)));
    const onSqlite = await found(engines[0]);
    expect(Object.values(onSqlite).filter((hits) => hits.length > 0).length).toBeGreaterThan(5);
    // In the same order too: the best first.
    expect(await found(engines[1])).toEqual(onSqlite);
  });
});
