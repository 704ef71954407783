import { fixed } from '../../../kernel/config/live.ts';
import { AgentConfig } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import type { Agent } from '../../agents/agents/api.ts';
import { turnMigrations } from '../../conversations/turns/migrations.ts';
import { recordCalls } from '../../conversations/turns/store.ts';
import { Ledger } from './limits/ledger.ts';
import { createBudgetMethods } from './methods.ts';
import { budgetMigrations } from './migrations.ts';
import { budgetOperations } from './store.ts';

const clock = createStepClock();

const insert = operation('test.insert', async (tx, of: { readonly agentId: string; readonly principalId: string }): Promise<void> => {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, estimated: false, costNano: 1, savedNano: 0 };
  const call = { provider: 'p', model: 'm', operation: 'interactive', outcome: 'ok', latencyMs: 1, responseId: null, atMs: clock.now() - 1 } as const;
  await recordCalls(tx, { ...of, turnId: 't', conversationRef: null }, [{ ...call, ...usage }]);
});

let db: Db;
beforeEach(async () => {
  db = await openInlineDb({ operations: [...budgetOperations, insert], migrations: [...turnMigrations, ...budgetMigrations] });
  for (const [agentId, principalId] of [
    ['default', 'token:ada'],
    ['default', 'token:bob'],
    ['other', 'token:ada'],
  ] as const)
    await db.write(insert, { agentId, principalId });
});
afterEach(() => db[Symbol.asyncDispose]());

function setUp() {
  const agents = new Map<string, Agent>(
    ['default', 'other'].map((id) => [
      id,
      { id, config: AgentConfig.parse({}), source: 'file', suspended: false, isDefault: id === 'default', workspaceDir: '/nonexistent' },
    ]),
  );
  const ledger = new Ledger({
    clock,
    overall: fixed({}),
    budgetsOf: (id) => agents.get(id)?.config.budgets,
    onSpend: () => undefined,
    warn: () => undefined,
  });
  const api = {
    defaultId: 'default',
    list: () => [...agents.values()],
    find: (id: string) => agents.get(id),
    usable: (): Agent => {
      throw new AppError('internal', 'not asked for');
    },
  };
  return createBudgetMethods({ db, clock, ledger, agents: api, autonomyOf: () => nothing, turnsOf: () => ({ running: 1, queued: 2 }) });
}

const nothing = {
  profile: 'assistant' as const,
  caps: [],
  budget: { tokensRemaining: 0, usdRemaining: 0, wallClockMsRemaining: 0 },
  spawns: { perMinuteRemaining: 0 },
  messages: { perHourRemaining: 0 },
  outwardQuota: { perHourRemaining: 0 },
};

/** A tool of the agent `other`, which acts for an all-powerful token. */
const call: CallContext = {
  identity: { principalId: 'token:ada', tokenId: 'ada', scopes: ['*'] },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
  agentCaller: { agentId: 'other', principalId: 'token:ada', conversationRef: 'cv_1' },
};
const narrowed: CallContext = { ...call, identity: { ...call.identity, agents: ['default'] } };

test('an agent introspects itself and no other', async () => {
  const methods = setUp();
  expect(await methods['capabilities.introspect']({}, call)).toMatchObject({ agentId: 'other', concurrency: { running: 1, queued: 2, max: 64 } });
  for (const params of [{ agentId: 'default' }, { agentId: 'unknown' }])
    await expect(methods['capabilities.introspect'](params, call)).rejects.toMatchObject({
      code: 'not_found',
      message: `Agent not found: ${params.agentId}`,
    });
  await expect(methods['capabilities.introspect']({}, narrowed)).rejects.toMatchObject({ code: 'not_found' });
});

test('an agent sees its own calls for its own principal, whatever its token may do', async () => {
  const methods = setUp();
  const report = { groupBy: ['agent' as const], limit: 10, timeZone: 'UTC' };
  expect((await methods['usage.report'](report, call)).rows.map(({ keys, calls }) => [keys, calls])).toEqual([[['other'], 1]]);
  expect((await methods['usage.report'](report, narrowed)).totals.calls).toBe(0);
  await expect(methods['usage.report']({ ...report, agentId: 'default' }, call)).rejects.toMatchObject({ code: 'not_found' });
  const { agentCaller: _, ...operator } = call;
  expect((await methods['usage.report'](report, operator)).totals.calls).toBe(3);
  const plain: CallContext = { ...operator, identity: { ...call.identity, scopes: ['rpc'] } };
  expect((await methods['usage.report'](report, plain)).totals.calls).toBe(2);
});

test('a report that ends soon after the epoch begins with it', async () => {
  const methods = setUp();
  const report = { groupBy: ['agent' as const], limit: 10, timeZone: 'UTC', untilMs: 1000 };
  expect(await methods['usage.report'](report, call)).toMatchObject({ sinceMs: 0, untilMs: 1000 });
});
