import { startTestServer } from '@gatehouse/testkit';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

const sentence = 'This key was withdrawn';

test('a failed turn is explained and drawn, by every name that it has', async () => {
  await using server = await startTestServer({
    provider: {
      answer: ({ body }) => {
        const text = JSON.stringify(body);
        if (text.includes('REFUSE')) return { status: 401, error: { message: `${sentence}\u001b[31m` } };
        if (text.includes('"role":"tool"') || !text.includes('LIST')) return { text: 'Done', usage: { input: 20, output: 5 } };
        return { toolCalls: [{ id: 'c1', name: 'ls', arguments: '{"path":"nowhere"}' }] };
      },
    },
    config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'coding' } } } },
  });
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  const run = (...args: string[]) => user.run({ args, env, io: { now: () => Date.now() } });
  const { traceId, conversationRef, sessionKey } = await server.client.call('agent.execute', { message: 'REFUSE', sessionKey: 'ada:web' });
  const { records } = await server.client.call('obs.trace.get', { ref: traceId });
  for (const ref of [traceId, conversationRef, sessionKey, records[0]?.id ?? '']) {
    const { code, out } = await run('explain', ref);
    expect(code).toBe(0);
    expect(out).toContain('provider_credentials_refused: mock/mock-fast: the provider refused the key.');
    expect(out).toContain('  gatehouse providers test mock\n');
    expect(out).not.toContain(sentence);
    const drawn = await run('trace', ref);
    expect(drawn.code).toBe(0);
    expect(drawn.out).toMatch(new RegExp(`^  model mock/mock-fast +█+ *\\| +\\d.*error  auth 401: Provider "mock" answered 401: ${sentence}`, 'm'));
    expect(drawn.out).not.toMatch(/attempt|\u001b/u);
    expect(drawn.out).toMatch(/^turn of default +█+ *\| .*failed \(error\)/m);
  }
  // Without a reference, the latest turn.
  expect((await run('explain')).out).toContain('provider_credentials_refused');
  expect((await run('trace')).out).toContain(sentence);
  const json = await run('explain', traceId, '--json', '--full');
  expect(JSON.parse(json.out)).toEqual(await server.client.call('obs.explain', { traceId, depth: 'full' }));

  await server.client.call('agent.execute', { message: 'LIST', sessionKey: 'bob:web' });
  const { out } = await run('trace', 'bob:web');
  expect(out).toMatch(/^  tool ls +█/m);
  expect(out).toMatch(/20 in, 5 out, \$0\.0000/);
  const narrow = Object.assign(new PassThrough(), { isTTY: true, columns: 60 });
  await user.run({ args: ['trace', 'bob:web'], env, io: { stdout: narrow } });
  const lines = String(narrow.read())
    .replaceAll(/\u001b\[\d+m/gu, '')
    .split('\n');
  expect(Math.max(...lines.slice(2).map((line) => line.length))).toBeLessThanOrEqual(60);

  expect(await run('explain', 'nobody:web')).toMatchObject({
    code: 1,
    out: expect.stringContaining('session_not_found: Nothing is stored under the given sessionKey.'),
  });
  expect(await run('trace', 'nobody:web')).toMatchObject({ code: 1, err: expect.stringContaining('No trace has this reference') });
  expect((await run('trace', 'tn_none')).code).toBe(1);

  const health = await run('health');
  expect(health.code).toBe(0);
  expect(health.out).toContain('Last 24 h: 2 sessions');
  expect(health.out).toContain('provider_refused: A provider refused the key or the account in 1 turns.\n  gatehouse providers test PROVIDER');
  for (let n = 0; n < 9; n += 1) await server.client.call('agent.execute', { message: 'REFUSE', sessionKey: `user${n}:web` });
  const degraded = await run('health', '--last', '1');
  expect(degraded).toMatchObject({ code: 1, out: expect.stringContaining('system_high_degraded_rate: ') });
  expect((await run('health', '--last', 'soon')).code).toBe(2);
  const token = (await server.as(['rpc'])).token;
  expect((await user.run({ args: ['health'], env: { ...env, GATEHOUSE_TOKEN: token } })).code).toBe(4);
});
