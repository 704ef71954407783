import { randomUUID } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CompiledQuery, sql } from 'kysely';
import { Client, DatabaseError } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { findPostgres, startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';
import { bind, bindingOf } from '../kernel/db/binding.ts';
import { type Operation, operation, query as declareQuery, type Query, type QueryTools, type Tx } from '../kernel/db/operation.ts';
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

  /** Runs operations with inputs that are not theirs, for the texts that they send; returns those that are wrong. */
  async function faultsOf(operations: readonly Operation<never, unknown>[], built: (at: string) => void): Promise<string[]> {
    const faults: string[] = [];
    /** Makes a row where there is none, so that an operation continues. */
    let pretends = false;

    async function execute(compiled: CompiledQuery, params: unknown = {}) {
      const { names, constants } = bindingOf(compiled);
      await client.query('SAVEPOINT statement');
      try {
        return await client.query(compiled.sql, bind(names, constants, params));
      } catch (error) {
        if (error instanceof DatabaseError && isFault(error.code ?? '')) faults.push(`${error.message}\n  ${compiled.sql}`);
        await client.query('ROLLBACK TO statement');
        throw error;
      }
    }
    async function rowsOf(compiled: CompiledQuery, params?: unknown): Promise<never[]> {
      const { rows, fields } = await execute(compiled, params);
      if (rows.length > 0 || !pretends) return rows as never[];
      return [Object.fromEntries(fields.map(({ name, dataTypeID }) => [name, made.get(dataTypeID) ?? '{}']))] as never[];
    }
    const compile = (query: unknown) => (query as AnyQuery).build(tools).compile();
    const tx: Tx = {
      all: (query, params) => rowsOf(compile(query), params),
      get: async (query, params) => (await rowsOf(compile(query), params))[0],
      run: async (query, params) => ({ changes: (await execute(compile(query), params)).rowCount ?? 0 }),
      build(make) {
        built(/\n.*\n.*?src\/(\S+:\d+):\d+/.exec(new Error('built').stack ?? '')?.[1] ?? 'unknown');
        return rowsOf(make(tools.db, sql, 'postgres').compile());
      },
      call: ({ operation, input }) => Promise.resolve(operations.find(({ name }) => name === operation)?.run(tx, input as never)),
    };
    for (const input of [widest, narrowest, emptiest]) {
      for (pretends of [false, true]) {
        for (const { run } of operations) {
          await client.query('BEGIN');
          // Many miss a field, or refuse.
          await run(tx, input as never).catch(() => undefined);
          await client.query('ROLLBACK');
        }
      }
    }
    return faults;
  }

  test('runs every query that is built for an input', async () => {
    const { operations } = await import('./registry.ts');
    const unbuilt = new Set(buildSites());
    expect(unbuilt.size).toBeGreaterThan(40);
    for (const row of found) await client.query(row);
    expect(await faultsOf(operations, (at) => unbuilt.delete(at))).toEqual([]);
    expect([...unbuilt]).toEqual([]);
  });

  test('a built query that only SQLite understands is found', async () => {
    const planted = operation('planted', (tx) =>
      tx.build((db, tag) =>
        db
          .selectFrom('turn')
          .select('id')
          .limit(tag<number>`-1`),
      ),
    );
    expect(await faultsOf([planted], () => {})).toContainEqual(expect.stringContaining('LIMIT must not be negative'));
  });
});

/** Wrong whatever the rows are: syntax and types, what is not supported, and limits below 0. */
const isFault = (code: string) => /^(?:42|0A|2201)/.test(code);

/** Lines that build a query, in stores. */
function buildSites(): string[] {
  const root = join(import.meta.dirname, '..');
  return globSync('{features,transactions}/**/*.ts', { cwd: root })
    .filter((path) => !/\.test\.ts$|testing/.test(path))
    .flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, index) => (/(?<!typeof )\btx\.build\b/.test(line) ? [`${path}:${index + 1}`] : [])),
    );
}

/** Values of rows by the type of their column: int8, int4, float8, numeric, bytea, bool. */
const made = new Map<number, unknown>([
  [20, 1],
  [23, 1],
  [701, 1],
  [1700, 1],
  [17, new Uint8Array(8)],
  [16, 1],
]);

/** Rows that some operations need to continue. */
const found = [
  `INSERT INTO memory (id, tenant_id, agent_id, principal_id, memory_type, trust_level, taint_level, source_who, tags, created_at_ms, content)
    VALUES ('m', 't', 'a', 'p', 'working', 'learned', 'clean', 'agent', '["t"]', 1, 'w')`,
  `INSERT INTO cron_intent (agent_id, operation_id, target, phase, before_json, created_at_ms, boot_id)
    VALUES ('a', 'o', 'all', 'prepared', '{}', 1, 'b'), ('b', 'o', 'all', 'archives_recorded', '{}', 1, 'b')`,
];

/** Fields of the inputs of all operations: filters that let everything through, and the rest. */
const widest = {
  afterId: '',
  agentId: 'a',
  agentIds: null,
  agents: null,
  around: ['p'],
  asked: { words: [{ word: 'w', says: 1, rare: 1 }], weight: { says: 1, rare: 1 } },
  atMs: 1,
  atOnce: 2,
  before: null,
  characters: 10,
  except: [],
  expected: { store: null, ledger: null },
  filter: { agentId: 'a', principalId: null, types: undefined, trust: undefined, tags: [], includeDerivedSources: true, atMs: 1 },
  fingerprint: 'f',
  groupBy: ['conversation'],
  id: 'i',
  ids: ['i'],
  instances: null,
  kind: null,
  kinds: ['run', 'graph', 'job', 'delivery'],
  limit: 10,
  made: [
    {
      id: 't',
      agentId: 'a',
      principalId: 'p',
      conversationRef: 'r',
      isInFlight: false,
      calls: [
        {
          provider: 'p',
          modelId: 'm',
          operation: 'chat',
          outcome: 'ok',
          usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, estimated: false },
          cost: null,
          savedNano: null,
          latencyMs: 1,
          startedAtMs: 1,
        },
      ],
    },
  ],
  maxBytes: 1e9,
  maxRows: 10,
  memoryType: null,
  most: 1,
  operations: ['image_generation'],
  open: { roots: ['r'], turns: ['t'] },
  minScore: 0,
  name: 'n',
  offset: 0,
  operationId: 'o',
  path: 'p',
  principalId: null,
  principalIds: [],
  ranges: [{ name: '2026-01-01', fromMs: 1, toMs: 86_400_000 }],
  rating: null,
  reach: { agentIds: null, principalId: null },
  ref: 'r',
  refs: ['r'],
  resuming: [],
  role: null,
  rootRunId: 'r',
  running: null,
  sessionKey: 's',
  tags: [],
  target: 'all',
  text: { phrases: ['w'], terms: [['w']] },
  traceId: 't',
  trustLevel: null,
  turnIds: ['t'],
  untilMs: 7_200_000,
  vector: { fingerprint: 'f', values: new Float32Array(64), calibration: { zero: 0, one: 1 } },
  wanted: [],
  windowHours: 1,
};
/** The same with every filter. */
const narrowest = {
  ...widest,
  agentId: 'b',
  agentIds: ['a', 'b'],
  agents: ['a'],
  audit: { id: 'au', atMs: 1, principalId: 'p', action: 'a', classification: 'mutate', outcome: 'success', traceId: 't' },
  before: '1',
  filter: { ...widest.filter, principalId: 'p', types: ['working'], trust: ['learned'], tags: ['t'], includeDerivedSources: false },
  groupBy: ['day', 'model'],
  id: undefined,
  instances: ['i', 'j'],
  kind: 'dm',
  memoryType: 'working',
  offset: 10,
  principalId: 'p',
  principalIds: ['p', 'q'],
  reach: { agentIds: ['a'], principalId: 'p' },
  resuming: ['i'],
  role: 'user',
  tags: ['t'],
  trustLevel: 'learned',
};
/** The same with lists of nothing. */
const emptiest = {
  ...narrowest,
  agentIds: [],
  around: [],
  ids: [],
  instances: [],
  principalIds: [],
  ranges: [],
  reach: { agentIds: [], principalId: 'p' },
  refs: [],
  tags: [],
};
