import { createStepClock } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CallContext, Identity } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import type { ResponseRow } from './api.ts';
import { responseMigrations } from './migrations.ts';
import { createResponses, type Responses } from './responses.ts';
import { keepResponse, maxDepth, maxHistoryLength, responseOperations } from './store.ts';

const keep = operation('test.keep', async (tx, rows: readonly ResponseRow[]): Promise<void> => {
  for (const row of rows) await keepResponse.run(tx, row);
});
const clock = createStepClock();
let db: Db;
let responses: Responses;
beforeAll(async () => {
  db = await openInlineDb({ operations: [...responseOperations, keep], migrations: responseMigrations });
  responses = createResponses({ db, clock, log: silentLog });
});
afterAll(async () => {
  await responses[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

/** Returns `count` responses `<name>0` …, each following the one before. */
const chain = (name: string, count: number, given: (index: number) => Partial<ResponseRow> = () => ({})): ResponseRow[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `${name}${index}`,
    previousId: index === 0 ? null : `${name}${index - 1}`,
    principalId: 'token:t',
    agentId: 'default',
    bodyJson: '{}',
    systemJson: JSON.stringify([`s${index}`]),
    messagesJson: JSON.stringify([{ role: 'user', content: `u${index}` }]),
    createdAtMs: clock.now(),
    expiresAtMs: clock.now() + 1_000,
    ...given(index),
  }));
const as = (identity: Partial<Identity> = {}): CallContext => ({
  identity: { principalId: 'token:t', tokenId: 't', scopes: ['*'], ...identity },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'http',
});

it('returns a history oldest first', async () => {
  await db.write(keep, chain('a', 3));
  expect(await responses.api.history('a2', as())).toEqual({
    system: ['s0', 's1', 's2'],
    messages: [0, 1, 2].map((index) => ({ role: 'user', content: `u${index}` })),
  });
});

it("excludes agents out of the token's reach, even further back", async () => {
  await db.write(
    keep,
    chain('b', 2, (index) => ({ agentId: index === 0 ? 'hidden' : 'default' })),
  );
  const limited = as({ agents: ['default'] });
  const missing = { code: 'not_found' };
  await expect(responses.api.get('b0', limited)).rejects.toMatchObject(missing);
  await expect(responses.api.delete('b0', limited)).rejects.toMatchObject(missing);
  await expect(responses.api.history('b1', limited)).rejects.toMatchObject(missing);
  expect(await responses.api.get('b1', limited)).toEqual({});
  expect(await responses.api.get('b0', as())).toEqual({});
});

it('rejects a history that is too deep or too long, and accepts one at the limit', async () => {
  await db.write(keep, chain('c', maxDepth + 1));
  expect((await responses.api.history(`c${maxDepth - 1}`, as())).messages).toHaveLength(maxDepth);
  const refused = { code: 'invalid_params', details: { param: 'previous_response_id' } };
  await expect(responses.api.history(`c${maxDepth}`, as())).rejects.toMatchObject(refused);
  const messagesJson = JSON.stringify(['x'.repeat(maxHistoryLength / 2)]);
  await db.write(
    keep,
    chain('d', 3, () => ({ messagesJson })),
  );
  await expect(responses.api.history('d2', as())).rejects.toMatchObject(refused);
});
