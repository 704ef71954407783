import { hasIrcServer, type IrcPerson, type IrcServer, joinIrc, startIrcServer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

const patience = { timeout: 30_000 };
const mockFast = { model: 'mock/mock-fast' };

describe.skipIf(!hasIrcServer('ngircd'))('tokens that are limited to some agents', () => {
  let ircd: IrcServer;
  let server: TestServer;
  let ada: IrcPerson;
  let own: Awaited<ReturnType<TestServer['as']>>;

  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
    const net = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false };
    server = await startTestServer({
      config: {
        agents: { default: mockFast, other: mockFast },
        channels: { mine: { ...net, nick: 'mine', agent: 'other' }, net: { ...net, nick: 'gate' } },
      },
    });
    const states = async () => (await server.client.call('channels.health', {})).channels.map(({ state }) => state);
    await vi.waitFor(async () => expect(await states()).toEqual(['healthy', 'healthy', 'healthy']), patience);
    ada = await joinIrc(ircd.port, 'ada');
    ada.say('PRIVMSG gate :hello');
    ada.say('PRIVMSG mine :hello');
    await vi.waitFor(async () => expect((await server.client.call('delivery.list', { state: 'accepted' })).total).toBe(2), patience);
    own = await server.as(['admin'], { agents: ['other'] });
  });
  afterAll(async () => {
    ada[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
    await ircd[Symbol.asyncDispose]();
  });

  const rowsOf = async (client: TestServer['client']) => {
    const { messages, total } = await client.call('channels.messages', {});
    const { deliveries, total: sent } = await client.call('delivery.list', {});
    const { pairings, total: asked } = await client.call('channels.pairings', {});
    const { delivered } = await client.call('delivery.queue.status', {});
    return { messages, total, deliveries, sent, pairings, asked, delivered };
  };
  const codeFor = (nick: string) => ada.messages.find((line) => line.startsWith(`${nick} ada`))?.slice(-8) ?? '';

  test('see only what belongs to these', async () => {
    expect(await rowsOf(own)).toMatchObject({
      messages: [{ agentId: 'other' }],
      total: 1,
      deliveries: [{ agentId: 'other' }],
      sent: 1,
      pairings: [{ channelInstanceId: 'mine' }],
      asked: 1,
      delivered: 1,
    });
    const none = await server.as(['admin'], { agents: ['gone'] });
    expect(await rowsOf(none)).toEqual({ messages: [], total: 0, deliveries: [], sent: 0, pairings: [], asked: 0, delivered: 0 });
    const channels = (await own.call('channels.list', {})).channels.map(({ channelInstanceId }) => channelInstanceId);
    expect(channels).toEqual(['gateway', 'mine']);
    expect((await own.call('channels.health', {})).channels.map(({ channelInstanceId }) => channelInstanceId)).toEqual(channels);
  });

  /** Returns the whole answer to a call, without its id. */
  const answerTo = async (method: string, params: object, id: string): Promise<string> => {
    const response = await fetch(`${server.url}/rpc`, {
      method: 'POST',
      headers: { authorization: `Bearer ${own.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return `${response.status} ${await response.text()}`.replaceAll(id, 'ID').replaceAll(/req_[\w-]+|\b[0-9a-f]{32}\b/g, 'REQUEST');
  };

  test('get the same answer about what is not theirs as about what does not exist', async () => {
    const { messages, deliveries, pairings } = await rowsOf(server.client);
    const messageId = messages.find(({ agentId }) => agentId === 'default')?.messageId ?? '';
    const deliveryId = deliveries.find(({ agentId }) => agentId === 'default')?.deliveryId ?? '';
    const pairingId = pairings.find(({ channelInstanceId }) => channelInstanceId === 'net')?.pairingId ?? '';
    const code = codeFor('gate');
    expect([messageId, deliveryId, pairingId, code]).not.toContain('');
    for (const [method, id, unknown, paramsOf] of [
      ['delivery.resend', deliveryId, 'ob_unknown', (one: string) => ({ deliveryId: one })],
      ['delivery.settle', deliveryId, 'ob_unknown', (one: string) => ({ deliveryId: one, as: 'accepted' })],
      ['channels.retry', messageId, 'cm_unknown', (one: string) => ({ messageId: one })],
      ['channels.unpair', pairingId, 'pr_unknown', (one: string) => ({ pairingId: one })],
      ['channels.pair', code, 'AAAAAAAA', (one: string) => ({ code: one })],
      ...['channels.get', 'channels.restart', 'channels.enable', 'channels.disable'].map(
        (name) => [name, 'net', 'unknown', (one: string) => ({ channel_type: 'irc', channel_instance_id: one })] as const,
      ),
      ['channels.messages', 'net', 'unknown', (one: string) => ({ channel_instance_id: one })],
      ['delivery.list', 'net', 'unknown', (one: string) => ({ channel_instance_id: one })],
    ] as const)
      expect([method, await answerTo(method, paramsOf(id), id)]).toEqual([method, await answerTo(method, paramsOf(unknown), unknown)]);
    expect(await rowsOf(server.client)).toMatchObject({ total: 2, sent: 2, asked: 2 });
  });

  test('act on what is theirs', async () => {
    expect(await own.call('channels.pair', { code: codeFor('mine') })).toMatchObject({ state: 'approved', channelInstanceId: 'mine' });
    const [{ pairingId } = { pairingId: '' }] = (await own.call('channels.pairings', {})).pairings;
    expect(await own.call('channels.unpair', { pairingId })).toEqual({ pairingId, removed: true });
    expect(await own.call('channels.restart', { channel_type: 'irc' })).toMatchObject({ status: 'enabled' });
  });
});
