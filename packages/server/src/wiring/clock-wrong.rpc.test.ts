import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, startTestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const dayMs = 86_400_000;
const yearsMs = 1095 * dayMs;
const startMs = Date.UTC(2026, 8, 21, 12);
let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-clock-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

test.each([
  ['ahead', yearsMs],
  ['behind', -yearsMs],
])('one start with the clock three years %s loses and doubles nothing: tokens, memories, messages, waiting work', async (_, offMs) => {
  let isDown = true;
  const answered: string[] = [];
  const start = (atMs: number) => {
    const clock = createStepClock(atMs);
    const answer = ({ body }: { readonly body: unknown }) => {
      const text = JSON.stringify(body);
      if (isDown && /<(?:hook|job)>/.test(text)) return { status: 500 };
      answered.push(...(text.match(/<\w+>/g)?.slice(-1) ?? []));
      return { text: 'Done.' };
    };
    const config = { webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'hook' }] } };
    return startTestServer({ clock, homeDir, provider: { answer }, config }).then((server) => ({
      ...server,
      clock,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }));
  };
  const pass = async (clock: { advance(ms: number): void }, ms: number) => {
    for (let left = ms; left > 0; left -= 30_000) {
      clock.advance(30_000);
      await new Promise((done) => setTimeout(done, 8));
    }
  };
  let secret = '';
  {
    await using before = await start(startMs);
    ({ secret } = await before.client.call('tokens.create', { scopes: ['rpc'], expiresAt: startMs + dayMs }));
    await before.client.call('memory.store', { content: 'The key lies under the mat' });
    await before.client.call('agent.execute', { message: '<asked>', sessionKey: 'a:b' });
    await before.client.call('webhooks.test', { mapping: 'hook', payload: { text: '<hook>' }, run: true });
    await before.client.call('cron.add', {
      name: 'later',
      schedule: { kind: 'in', seconds: 7_200 },
      payload: { kind: 'agent_turn', message: '<job>' },
    });
    await pass(before.clock, 60_000);
  }
  {
    await using wrong = await start(startMs + offMs);
    await pass(wrong.clock, 300_000);
    expect(answered).toEqual(['<asked>']);
  }
  isDown = false;
  await using right = await start(startMs + 3_600_000);
  const call = await fetch(`${right.url}/rpc`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'agents.list', params: {} }),
  });
  expect(call.status).toBe(200);
  expect((await right.client.call('memory.search', { query: 'key under the mat' })).results).toHaveLength(1);
  expect((await right.client.call('session.history', { sessionKey: 'a:b' })).messages).toHaveLength(2);
  await pass(right.clock, 3_700_000);
  await expect.poll(() => (right.clock.advance(5_000), answered.toSorted())).toEqual(['<asked>', '<hook>', '<job>']);
});
