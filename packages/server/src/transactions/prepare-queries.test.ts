import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { findPostgres, startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';
import { query as declareQuery, type Query, type QueryTools } from '../kernel/db/operation.ts';
import { migratePostgres } from '../kernel/db/postgres/migrate.ts';
import { createQueryTools } from '../kernel/db/query-tools.ts';

type AnyQuery = Query<never, unknown>;

/** Every declared query by where it is declared. */
const declared = vi.hoisted(() => new Map<unknown, string>());

// oxlint-disable-next-line house/own-mocks -- nothing is replaced: what the stores declare is noted as they load
vi.mock(import('../kernel/db/operation.ts'), async (load) => {
  const actual = await load();
  const query: typeof actual.query = (build) => {
    const made = actual.query(build);
    // The first line is this function; the next is the store.
    declared.set(made, /\n.*\n.*?src\/(\S+:\d+):\d+/.exec(new Error('declared').stack ?? '')?.[1] ?? 'unknown');
    return made;
  };
  return { ...actual, query };
});

const tools = createQueryTools('postgres') as QueryTools<never>;

describe.skipIf(findPostgres() === undefined)('on a migrated PostgreSQL', () => {
  let server: TestPostgres;
  let client: Client;

  beforeAll(async () => {
    server = await startPostgres();
    client = new Client({ connectionString: server.url() });
    await client.connect();
    const { migrations } = await import('./registry.ts');
    await migratePostgres(client, migrations, { nowMs: 1, programVersion: '1.0.0' });
  });
  afterAll(async () => {
    await client.end();
    await server[Symbol.asyncDispose]();
  });

  /** The error of a text that does not prepare. */
  async function refusal(text: string): Promise<string | undefined> {
    try {
      await client.query(`PREPARE "${randomUUID()}" AS ${text}`);
      return undefined;
    } catch (error) {
      return `${String(error)}\n  ${text}`;
    }
  }

  async function refusals(queries: Iterable<readonly [unknown, string]>): Promise<string[]> {
    const found: string[] = [];
    for (const [query, at] of queries) {
      const reason = await refusal((query as AnyQuery).build(tools).compile().sql).catch(String);
      if (reason !== undefined) found.push(`${at}: ${reason}`);
    }
    return found;
  }

  test('prepares every declared query', async () => {
    expect(declared.size).toBeGreaterThan(350);
    expect(await refusals(declared)).toEqual([]);
  });

  test('a query that only SQLite understands is found', async () => {
    const planted = declareQuery<{ at: number }>(({ db, sql }) => db.selectFrom('turn').select(sql`iif(steps > 1, 1, 0)`.as('many')));
    expect(await refusals([[planted, 'here:1']])).toEqual([expect.stringContaining('function iif')]);
  });
});
