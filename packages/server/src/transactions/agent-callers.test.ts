import { AgentConfig } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deleteConversation } from './delete-conversation.ts';
import { AppError } from '../kernel/app-error.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { createLanes } from '../kernel/lane.ts';
import { silentLog } from '../kernel/log.ts';
import { resetConversation, resetSession } from './reset-conversation.ts';
import { migrations, operations } from './registry.ts';
import type { Agent } from '../features/agents/agents/api.ts';
import { createFence } from '../runtime/fence.ts';
import { createSessions, type Sessions } from '../features/conversations/sessions/sessions.ts';
import { addMessages } from '../features/conversations/sessions/store.ts';

const add = operation('test.add', addMessages);
const agents = new Map<string, Agent>(
  ['default', 'other'].map((id) => [
    id,
    { id, config: AgentConfig.parse({}), source: 'file', suspended: false, isDefault: id === 'default', workspaceDir: '/nowhere' },
  ]),
);
const refOf = (name: string) => `cv_${name.padEnd(43, '0')}`;
const page = { offset: 0, limit: 50 };

let db: Db;
let sessions: Sessions;
beforeEach(async () => {
  db = await openInlineDb({ migrations, operations: [...operations, add] });
  for (const [name, agentId, principalId] of [
    ['own', 'default', 'token:ada'],
    ['second', 'default', 'token:ada'],
    ['elsewhere', 'other', 'token:ada'],
    ['foreign', 'default', 'token:bob'],
  ] as const) {
    await db.write(add, {
      ref: refOf(name),
      agentId,
      principalId,
      sessionKey: `${name}:desk`,
      turnId: 'tn_1',
      steps: 1,
      toolCalls: 0,
      inputTokens: 1,
      outputTokens: 1,
      costNano: 0,
      atMs: 1,
      messages: [
        {
          role: 'user',
          content: `needle ${name}`,
          toolJson: null,
          attachmentsJson: null,
          createdAtMs: 1,
        },
      ],
    });
  }
  sessions = createSessions({
    db,
    bus: createEventBus((error) => {
      throw error;
    }),
    clock: createStepClock(),
    log: silentLog,
    agents: {
      defaultId: 'default',
      list: () => [...agents.values()],
      find: (id) => agents.get(id),
      usable(id = 'default') {
        const agent = agents.get(id);
        if (agent === undefined) throw new AppError('not_found', `Agent not found: ${id}`);
        return agent;
      },
    },
    modelOf: () => ({ model: 'mock/mock-fast', efforts: [] }),
    deleteConversation,
    resetSession,
    resetConversation,
    work: {
      generate: () => {
        throw new Error('no model is called');
      },
    },
    fence: createFence({ key: Buffer.alloc(32, 7) }),
    titles: { current: true },
    compact: async () => ({ messageCount: 1, tokensBefore: 1, tokensAfter: 1, summaries: 0, method: 'none' }),
    forgetTraces: async () => {},
    cleared: () => {},
    clearing: async () => ({ [Symbol.dispose]() {} }),
    stop: () => {},
    lanes: createLanes(),
  });
});
afterEach(async () => {
  await sessions[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

/** A tool of the agent `default`, in a turn of Ada's own conversation; its token may do everything. */
const call: CallContext = {
  identity: { principalId: 'token:ada', tokenId: 'ada', scopes: ['*'] },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
  agentCaller: { agentId: 'default', principalId: 'token:ada', conversationRef: refOf('own') },
};

test('an agent sees its own conversations with the principal that it works for, and no others', async () => {
  const names = (rows: readonly { conversationRef: string }[]) =>
    rows.map(({ conversationRef }) => conversationRef.replace(/^cv_|0+$/g, '')).toSorted();
  for (const params of [{ allAgents: false }, { allAgents: true }, { allAgents: false, agentId: 'default' }]) {
    const { sessions: rows, total } = await sessions.methods['session.list']({ kind: 'all', ...page, ...params }, call);
    expect([names(rows), total]).toEqual([['own', 'second'], 2]);
  }
  expect(await sessions.methods['session.list']({ kind: 'all', allAgents: false, agentId: 'other', ...page }, call)).toMatchObject({ total: 0 });

  const found = await sessions.methods['session.search']({ query: 'needle', scope: 'all', kind: 'all', limit: 10 }, call);
  expect(found.mode === 'search' && names(found.results)).toEqual(['own', 'second']);
  const elsewhere = { query: 'needle', scope: 'all', kind: 'all', limit: 10, agentId: 'other' } as const;
  expect(await sessions.methods['session.search'](elsewhere, call)).toMatchObject({ total: 0 });

  expect((await sessions.methods['session.history']({ ...page, conversationRef: refOf('second') }, call)).total).toBe(1);
  for (const name of ['foreign', 'elsewhere', 'unknown']) {
    for (const method of ['session.history', 'session.export', 'session.status'] as const) {
      await expect(sessions.methods[method]({ ...page, conversationRef: refOf(name) }, call)).rejects.toMatchObject({
        code: 'not_found',
        message: 'Conversation not found',
      });
    }
  }
});

test('without an address an agent uses the conversation of its turn', async () => {
  expect(await sessions.methods['session.status']({}, call)).toMatchObject({ conversationRef: refOf('own'), sessionKey: 'own:desk' });
  expect((await sessions.methods['session.history'](page, call)).session.conversationRef).toBe(refOf('own'));
});

test('an agent that the token excludes sees nothing', async () => {
  const narrowed: CallContext = { ...call, identity: { ...call.identity, agents: ['other'] } };
  expect(await sessions.methods['session.list']({ kind: 'all', allAgents: true, ...page }, narrowed)).toMatchObject({ total: 0 });
  await expect(sessions.methods['session.history'](page, narrowed)).rejects.toMatchObject({ code: 'not_found' });
});

test('administrative methods refuse agents, whatever their token may do', async () => {
  for (const conversationRef of [refOf('own'), refOf('second'), refOf('foreign'), refOf('unknown')]) {
    await expect(sessions.methods['session.delete']({ conversationRef }, call)).rejects.toMatchObject({ code: 'denied' });
    await expect(sessions.methods['session.reset_conversation']({ conversationRef, memory: true }, call)).rejects.toMatchObject({ code: 'denied' });
  }
});

test('a turn cannot wait for its own end, but may reset another of its conversations', async () => {
  for (const method of ['session.reset', 'session.compact'] as const) {
    await expect(sessions.methods[method]({}, call)).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(sessions.methods[method]({ conversationRef: refOf('foreign') }, call)).rejects.toMatchObject({ code: 'not_found' });
  }
  expect(await sessions.methods['session.reset']({ conversationRef: refOf('second') }, call)).toMatchObject({ previousMessageCount: 1 });
});
