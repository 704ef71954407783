import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import type { ResponseRow } from './api.ts';
import { responseMigrations } from './migrations.ts';
import { findResponse, keepResponse, maxDepth, maxHistoryLength, pruneResponses, readChain, responseOperations } from './store.ts';

const keep = operation('test.keep', async (tx, rows: readonly ResponseRow[]): Promise<void> => {
  for (const row of rows) await keepResponse.run(tx, row);
});

let db: Db;
beforeAll(async () => {
  db = await openInlineDb({ operations: [...responseOperations, keep], migrations: responseMigrations });
});
afterAll(() => db[Symbol.asyncDispose]());

const row = (id: string, given: Partial<ResponseRow> = {}): ResponseRow => ({
  id,
  previousId: null,
  principalId: 'p',
  agentId: 'default',
  bodyJson: '{}',
  systemJson: '[]',
  messagesJson: JSON.stringify([id]),
  createdAtMs: 0,
  expiresAtMs: 100,
  ...given,
});
const chainOf = (id: string, nowMs = 0) => db.read(readChain, { id, principalId: 'p', nowMs });
const has = async (id: string, nowMs = 0) => (await db.read(findResponse, { id, principalId: 'p', nowMs })) !== undefined;

describe('stored responses', () => {
  it('are read back to the first one, newest first, including expired ones', async () => {
    await db.write(keep, [row('a1', { expiresAtMs: 10 }), row('a2', { previousId: 'a1', expiresAtMs: 20 }), row('a3', { previousId: 'a2' })]);
    const messages = async (nowMs: number) => (await chainOf('a3', nowMs)).map((link) => JSON.parse(link.messagesJson) as unknown);
    expect(await messages(0)).toEqual([['a3'], ['a2'], ['a1']]);
    expect(await messages(50)).toEqual([['a3'], ['a2'], ['a1']]);
    expect(await messages(100)).toEqual([]);
    expect(await chainOf('a2', 50)).toEqual([]);
  });

  it('of another principal are neither found nor part of a history', async () => {
    await db.write(keep, [row('b1', { principalId: 'other' }), row('b2', { previousId: 'b1' })]);
    expect(await chainOf('b1')).toEqual([]);
    expect(await chainOf('b2')).toMatchObject([{ previousId: 'b1' }]);
  });

  it('are read one past the limits of a history, and no further', async () => {
    const count = maxDepth + 20;
    await db.write(
      keep,
      Array.from({ length: count }, (_, index) => row(`c${index}`, { previousId: index === 0 ? null : `c${index - 1}` })),
    );
    expect(await chainOf(`c${maxDepth - 1}`)).toHaveLength(maxDepth);
    expect(await chainOf(`c${count - 1}`)).toHaveLength(maxDepth + 1);
    const messagesJson = JSON.stringify('x'.repeat(maxHistoryLength / 2));
    await db.write(
      keep,
      Array.from({ length: 5 }, (_, index) => row(`d${index}`, { previousId: index === 0 ? null : `d${index - 1}`, messagesJson })),
    );
    expect(await chainOf('d4')).toHaveLength(2);
  });

  it('that have expired are deleted, unless an unexpired one follows them', async () => {
    await db.write(keep, [
      row('e1', { expiresAtMs: 10 }),
      row('e2', { previousId: 'e1', expiresAtMs: 10 }),
      row('e3', { previousId: 'e2', expiresAtMs: 200 }),
      row('e4', { previousId: 'e2', expiresAtMs: 10 }),
    ]);
    await db.write(pruneResponses, { nowMs: 50 });
    expect(await Promise.all(['e1', 'e2', 'e3', 'e4'].map((id) => has(id)))).toEqual([true, true, true, false]);
    await db.write(pruneResponses, { nowMs: 200 });
    expect(await Promise.all(['e1', 'e2', 'e3'].map((id) => has(id)))).toEqual([false, false, false]);
  });
});
