import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const token = 'a-shared-secret-of-more-than-32-characters';
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      agents: { default: { model: 'mock/mock-fast' }, helper: { model: 'mock/mock-fast' } },
      webhooks: {
        token,
        presets: ['github'],
        mappings: [
          {
            id: 'alerts',
            name: 'Alerts',
            match: { path: 'alerts', source: 'grafana' },
            agentId: 'helper',
            messageTemplate: 'Alert: {{title}}',
            sessionKey: '{{title}}',
          },
          { id: 'beat', match: { path: 'beat' }, action: 'wake' },
          { id: 'rest' },
        ],
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const stateOf = async (deliveryId: string) =>
  (await server.client.call('webhooks.deliveries', {})).deliveries.find((delivery) => delivery.deliveryId === deliveryId)?.state;

describe.each(['http', 'websocket'] as const)('by %s', (transport) => {
  const using = async <T>(run: (call: TestServer['client']['call']) => Promise<T>): Promise<T> => {
    if (transport === 'http') return run(server.client.call);
    const socket = server.socket();
    try {
      return await run(socket.call.bind(socket));
    } finally {
      socket.close();
    }
  };

  it('lists the rules in evaluation order', async () => {
    const { webhooks, enabled, path } = await using((call) => call('webhooks.list', {}));
    expect([enabled, path, webhooks.map(({ mapping }) => mapping)]).toEqual([true, '/hooks', ['alerts', 'beat', 'github', 'rest', 'webhook']]);
    expect(webhooks[0]).toMatchObject({ name: 'Alerts', path: 'alerts', source: 'grafana', agentId: 'helper', signature: 'hmac', builtIn: false });
    expect(JSON.stringify(webhooks)).not.toContain(token);
  });

  it('shows how a mapping reads a payload without side effects', async () => {
    const before = (await server.client.call('webhooks.deliveries', {})).deliveries.length;
    const tried = await using((call) => call('webhooks.test', { mapping: 'alerts', payload: { source: 'grafana', title: 'disk' } }));
    expect(tried).toMatchObject({ mapping: 'alerts', takenBy: 'alerts', message: 'Alert: disk', deliveryId: null });
    expect(tried.sessionKey).toMatch(/:webhook:disk$/);
    // Without its source it would match another rule.
    expect((await using((call) => call('webhooks.test', { mapping: 'alerts', payload: { title: 'x' } }))).takenBy).toBe('rest');
    expect((await using((call) => call('webhooks.test', { mapping: 'github', headers: { 'X-GitHub-Event': 'push' } }))).message).toBe(
      'GitHub event: push',
    );
    expect((await using((call) => call('webhooks.test', { mapping: 'beat' }))).conversationRef).toBeNull();
    expect((await server.client.call('webhooks.deliveries', {})).deliveries.length).toBe(before);
  });

  it('runs a test, runs it again, and lists both with their turns', async () => {
    const tried = await using((call) => call('webhooks.test', { mapping: 'alerts', payload: { title: `${transport} again` }, run: true }));
    const first = tried.deliveryId ?? '';
    await expect.poll(() => stateOf(first)).toBe('done');
    const { deliveryId: second, replayOf } = await using((call) => call('webhooks.replay', { deliveryId: first }));
    expect(replayOf).toBe(first);
    await expect.poll(() => stateOf(second)).toBe('done');
    const { deliveries, hasMore } = await using((call) => call('webhooks.deliveries', { mapping: 'alerts', state: 'done', limit: 2 }));
    expect(deliveries.map((row) => [row.deliveryId, row.replayOf, row.agentId, row.finishReason, row.conversationRef])).toEqual([
      [second, first, 'helper', 'stop', tried.conversationRef],
      [first, null, 'helper', 'stop', tried.conversationRef],
    ]);
    expect(deliveries.every(({ turnId }) => turnId?.startsWith('tn_'))).toBe(true);
    expect(hasMore).toBe(transport === 'websocket');
    const page = await using((call) => call('webhooks.deliveries', { before: first, limit: 200 }));
    expect(page.deliveries.some(({ deliveryId }) => deliveryId === first || deliveryId === second)).toBe(false);
    expect((await using((call) => call('webhooks.deliveries', { mapping: 'alerts', state: 'failed' }))).deliveries).toEqual([]);
    const { messages } = await server.client.call('session.history', { conversationRef: tried.conversationRef ?? '' });
    expect(messages.filter(({ role }) => role === 'user')).toHaveLength(2);
  });

  it('rejects unknown deliveries and invalid requests', async () => {
    const code = (error: string) => expect.objectContaining({ code: error });
    await expect(using((call) => call('webhooks.test', { mapping: 'none' }))).rejects.toEqual(code('not_found'));
    await expect(using((call) => call('webhooks.replay', { deliveryId: 'wd_0199e0a0-7c00-7000-8000-000000000001' }))).rejects.toEqual(
      code('not_found'),
    );
    await expect(using((call) => call('webhooks.replay', { deliveryId: 'x' }))).rejects.toEqual(code('invalid_params'));
    await expect(using((call) => call('webhooks.deliveries', { limit: 0 }))).rejects.toEqual(code('invalid_params'));
    const ping = await using((call) => call('webhooks.test', { mapping: 'github', headers: { 'x-github-event': 'ping' }, run: true }));
    await expect(using((call) => call('webhooks.replay', { deliveryId: ping.deliveryId ?? '' }))).rejects.toEqual(code('precondition_failed'));
  });
});

it('is only for operators', async () => {
  const plain = await server.as(['rpc']);
  for (const name of ['webhooks.list', 'webhooks.deliveries'] as const)
    await expect(plain.call(name, {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect(plain.call('webhooks.test', { mapping: 'rest', run: true })).rejects.toMatchObject({ code: 'insufficient_scope' });
});

it('writes an audit row with each delivery', async () => {
  const { deliveryId } = await server.client.call('webhooks.test', { mapping: 'rest', run: true });
  const { rows } = await server.client.call('obs.audit.query', {});
  expect(rows.find(({ target }) => target === deliveryId)).toMatchObject({
    action: 'webhook.received',
    actor: 'token:root',
    refs: { mapping: 'rest' },
  });
});
