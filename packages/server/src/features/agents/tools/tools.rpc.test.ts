import { startTestServer, type TestServer } from '@gatehouse/testkit';
import * as z from 'zod';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Tool } from '../../../runtime/tool.ts';

const served = Array.from({ length: 45 }, (_, index): Tool => ({
  name: `mcp__shop--item_${index}`,
  description: `Item ${index}`,
  args: z.strictObject({}),
  risk: index === 0 ? 'write' : 'read',
  effect: 'pure',
  timeoutMs: 1000,
  source: 'mcp:shop',
  run: async () => ({ content: '' }),
}));

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    tools: served,
    config: {
      agents: {
        default: { model: 'mock/mock-fast', tools: { allow: ['group:mcp'], deny: ['mcp__shop--item_1'] }, originTools: { mcp: ['write'] } },
        plain: { model: 'mock/mock-fast' },
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const list = async (params: Parameters<typeof server.client.call<'tools.list'>>[1] = {}) => {
  const { tools, total } = await server.client.call('tools.list', params);
  expect(total).toBe(tools.length);
  return new Map(tools.map((tool) => [tool.name, tool]));
};

test('reports the policy of the agent for every tool, by default for the default agent and its own callers', async () => {
  const tools = await list();
  expect(tools.get('read')).toMatchObject({ source: 'builtin', risk: 'read', allowed: true, deferred: false });
  expect(tools.get('web_fetch')).toMatchObject({ allowed: false, refusal: 'not_in_profile' });
  expect(tools.get('mcp__shop--item_1')).toMatchObject({ source: 'mcp:shop', allowed: false, refusal: 'explicit_deny', deferred: false });
  expect(tools.get('mcp__shop--item_2')).toMatchObject({ source: 'mcp:shop', allowed: true, deferred: true });
  expect(tools.get('discover_tools')).toMatchObject({ allowed: true, deferred: false, description: expect.stringContaining('shop (44)') });
});

test('omits a tool that no turn gets: the list of background tasks where none can start', async () => {
  await server.client.call('agents.create', { agentId: 'shell', config: { tools: { profile: 'coding' }, originTools: { v1: ['exec'] } } });
  expect((await list()).has('background_tasks')).toBe(false);
  expect((await list({ agentId: 'shell' })).get('background_tasks')).toMatchObject({ allowed: true });
  expect((await list({ agentId: 'shell', origin: 'v1' })).has('background_tasks')).toBe(false);
});

test.each(['v1', 'webhook', 'mcp'] as const)('for %s only writing tools named for it remain', async (origin) => {
  const tools = await list({ origin });
  expect(tools.get('mcp__shop--item_0')).toMatchObject({ allowed: false, refusal: 'origin' });
  expect(tools.get('write')).toMatchObject(origin === 'mcp' ? { allowed: true } : { allowed: false, refusal: 'origin' });
});

test('answers for another agent, over both transports, and refuses what it cannot answer', async () => {
  expect((await list({ agentId: 'plain' })).get('mcp__shop--item_2')).toMatchObject({ refusal: 'not_in_profile' });
  using socket = server.socket();
  expect(await socket.call('tools.list', {})).toEqual(await server.client.call('tools.list', {}));
  await expect(list({ agentId: 'nobody' })).rejects.toMatchObject({ name: 'NotFoundError' });
  const bound = await server.as(['admin'], { agents: ['plain'] });
  await expect(bound.call('tools.list', { agentId: 'default' })).rejects.toMatchObject({ message: 'Agent not found: default' });
  const reader = await server.as(['rpc']);
  await expect(reader.call('tools.list', {})).rejects.toMatchObject({ name: 'PermissionError' });
  for (const params of [{ origin: 'background' }, { origin: 'elsewhere' }, { agentId: 5 }, { more: 1 }])
    await expect(server.client.call('tools.list', params as never)).rejects.toMatchObject({ name: 'InvalidParamsError' });
});
