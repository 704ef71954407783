import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import type { CallContext } from '../../../kernel/call-context.ts';
import { adminCall, type OpenedMemory, openMemory } from './testing/open-memory.ts';

/** A tool of the agent `default`, in a turn for Ada; the token behind it is all-powerful. */
const call: CallContext = {
  ...adminCall(),
  agentCaller: { agentId: 'default', principalId: 'token:ada', conversationRef: `cv_${'0'.repeat(43)}` },
};
const page = { offset: 0, limit: 10 };
const search = { query: 'plan', limit: 10, minScore: 0, tags: [] };
const browse = { ...page, sort: 'oldest' as const, tags: [] };

async function openPlans(): Promise<{ readonly memory: OpenedMemory; readonly foreign: string }> {
  const memory = await openMemory({ clock: createStepClock(), embed: 'none' });
  await memory.add('plan for all');
  await memory.add('plan of Ada', { principalId: 'token:ada' });
  await memory.add('plan elsewhere', { agentId: 'other', principalId: 'token:ada' });
  return { memory, foreign: await memory.add('plan of Bob', { principalId: 'token:bob' }) };
}

test('an agent sees its own memories of its principal and those for everybody, whatever its token may do', async () => {
  const { memory, foreign } = await openPlans();
  await using _ = memory;
  const seen = ['plan for all', 'plan of Ada'];
  const { results } = await memory.methods['memory.search'](search, call);
  expect(results.map(({ content }) => content).toSorted()).toEqual(seen);
  const { entries, total } = await memory.methods['memory.browse'](browse, call);
  expect([entries.map(({ content }) => content), total]).toEqual([seen, 2]);
  expect(await memory.methods['memory.inspect']({ id: foreign }, call)).toEqual({});
  expect(await memory.methods['memory.stats']({}, call)).toMatchObject({ totalEntries: 2, byAgent: { default: 2 } });
  for (const agentId of ['other', 'unknown']) {
    const refusal = { code: 'not_found', message: `Agent not found: ${agentId}` };
    await expect(memory.methods['memory.search']({ ...search, agentId }, call)).rejects.toMatchObject(refusal);
    await expect(memory.methods['memory.browse']({ ...browse, agentId }, call)).rejects.toMatchObject(refusal);
    await expect(memory.methods['memory.stats']({ agentId }, call)).rejects.toMatchObject(refusal);
  }
});

test('sums are by agent, whatever the agents are called', async () => {
  const { memory } = await openPlans();
  await using _ = memory;
  await memory.add('plan of the constructor', { agentId: 'constructor' });
  expect((await memory.methods['memory.stats']({}, adminCall())).byAgent).toEqual({ default: 3, other: 1, constructor: 1 });
});

test('an agent outside the token’s list sees nothing', async () => {
  const { memory } = await openPlans();
  await using _ = memory;
  const narrowed: CallContext = { ...call, identity: { ...call.identity, agents: ['other'] } };
  expect((await memory.methods['memory.browse'](browse, narrowed)).total).toBe(0);
  await expect(memory.methods['memory.search'](search, narrowed)).rejects.toMatchObject({ code: 'not_found' });
});

test('administrative methods refuse agents', async () => {
  const { memory, foreign } = await openPlans();
  await using _ = memory;
  const refusal = { code: 'denied' };
  await expect(memory.methods['memory.delete']({ ids: [foreign] }, call)).rejects.toMatchObject(refusal);
  await expect(memory.methods['memory.flush']({}, call)).rejects.toMatchObject(refusal);
  await expect(memory.methods['memory.export'](page, call)).rejects.toMatchObject(refusal);
  const entry = { content: 'planted', memoryType: 'semantic' as const, trustLevel: 'learned' as const, tags: [], pinned: true };
  await expect(memory.methods['memory.store'](entry, call)).rejects.toMatchObject(refusal);
  expect((await memory.methods['memory.browse'](browse, adminCall())).total).toBe(4);
});
