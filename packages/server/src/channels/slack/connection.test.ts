import { freePort } from '@gatehouse/testkit/free-port';
import { expect, test } from 'vitest';
import { connect, open, passTime, startWorld } from './testing/connect.ts';

test.each(['invalid_auth', 'account_inactive', 'token_revoked'])('%s: the account is refused, and no connection is made', async (error) => {
  const world = await startWorld();
  world.slack.fault('auth.test', { is: 'error', error });
  const { ended } = await connect(world);
  expect(await ended).toEqual({ ended: 'unauthorized', text: `Slack refused: ${error}` });
  expect(world.slack.callsOf('apps.connections.open')).toEqual([]);
});

test('a wrong app-level token is refused; its text is in no result', async () => {
  const world = await startWorld();
  const { ended } = await connect(world, { config: { appToken: 'xapp-SECRET' } });
  expect(await ended).toEqual({ ended: 'unauthorized', text: 'Slack refused: invalid_auth' });
});

test.each([
  ['nobody listens', { is: 'cutBefore' } as const],
  ['a page of a proxy', { is: 'page', text: '<html>xoxb-fake-bot</html>' } as const],
  ['an internal error', { is: 'status', status: 502 } as const],
  ['a limit', { is: 'limited' } as const],
])('%s: it is tried again', async (_name, fault) => {
  const world = await startWorld();
  world.slack.fault('apps.connections.open', fault);
  const end = await (await connect(world)).ended;
  expect(end.ended).toBe('transient');
  expect(end.text).not.toContain('xoxb');
});

test('nobody listens at all', async () => {
  const world = await startWorld();
  const { ended } = await connect(world, { config: { apiUrl: `http://127.0.0.1:${await freePort()}/api/` } });
  expect(await ended).toEqual({ ended: 'transient', text: 'The request failed: ECONNREFUSED' });
});

test('too many clients of one app are a conflict', async () => {
  const world = await startWorld();
  world.slack.fault('apps.connections.open', { is: 'error', error: 'too_many_websockets' });
  expect((await (await connect(world)).ended).ended).toBe('conflict');
});

test('a connection that hangs before its greeting ends at the limit', async () => {
  const world = await startWorld();
  world.slack.fault('apps.connections.open', { is: 'hang' });
  const connecting = connect(world);
  await expect.poll(() => world.slack.callsOf('apps.connections.open')).toHaveLength(1);
  world.clock.advance(30_000);
  expect((await (await connecting).ended).ended).toBe('transient');
});

test('a stop ends it at once, also while it connects', async () => {
  const world = await startWorld();
  const connected = await connect(world);
  expect(await connected.stop()).toEqual({ ended: 'stopped', text: 'Stopped' });
  await expect.poll(() => world.slack.open).toBe(0);
  world.slack.fault('auth.test', { is: 'hang' });
  const stopping = new AbortController();
  const { adapter } = open(world);
  const ended = adapter.run(stopping.signal, { cursor: undefined, take: async () => {}, alive() {}, connected() {} });
  await expect.poll(() => world.slack.callsOf('auth.test')).toHaveLength(2);
  stopping.abort();
  expect((await ended).ended).toBe('stopped');
  expect(world.clock.pending()).toBe(0);
});

test('Slack asks for another connection: what comes meanwhile is not lost', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { received } = await connect(world);
  const ada = slack.person('Ada');
  slack.write(ada, slack.im(ada), 'before');
  await expect.poll(() => received).toHaveLength(1);
  slack.askToDisconnect();
  slack.write(ada, slack.im(ada), 'meanwhile');
  await expect.poll(() => [slack.connections, slack.open]).toEqual([2, 1]);
  await expect.poll(() => received.map(({ text }) => text)).toEqual(['before', 'meanwhile']);
  slack.repeat();
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect(received).toHaveLength(2);
});

test('Slack that asks for one connection after another gets a pause', async () => {
  const world = await startWorld();
  const { ended } = await connect(world);
  for (let n = 1; n <= 4; n += 1) {
    await expect.poll(() => [world.slack.connections, world.slack.open]).toEqual([n, 1]);
    world.slack.askToDisconnect('warning');
  }
  expect(await ended).toEqual({ ended: 'transient', text: 'Slack asks for one connection after another' });
});

test('a lost connection ends the run; socket mode that was switched off refuses the account', async () => {
  const world = await startWorld();
  const first = await connect(world);
  world.slack.drop();
  expect(await first.ended).toEqual({ ended: 'transient', text: 'The connection to Slack ended' });
  const second = await connect(world, { opened: first });
  world.slack.askToDisconnect('link_disabled');
  expect((await second.ended).ended).toBe('unauthorized');
});

test('a token that is revoked while it is connected ends the run when it is used', async () => {
  const world = await startWorld();
  const { ended, send } = await connect(world);
  const lab = world.slack.channel('lab');
  world.slack.fault('chat.postMessage', { is: 'error', error: 'token_revoked' });
  expect(await send({ conversationId: lab, text: 'hi' })).toMatchObject({ is: 'notSent', scope: 'instance' });
  expect((await ended).ended).toBe('unauthorized');
});

test('quiet is not dead: answers to pings prove that the peer is alive', async () => {
  const world = await startWorld();
  const { slack } = world;
  const connected = await connect(world);
  for (let n = 0; n < 6; n += 1) {
    const before = connected.proofs();
    await passTime(world, 20_000);
    expect(connected.proofs()).toBeGreaterThan(before);
  }
  expect([slack.open, slack.connections]).toEqual([1, 1]);
});

test('a connection over which nothing comes any more ends within a minute', async () => {
  const world = await startWorld();
  const connected = await connect(world);
  world.slack.fallSilent();
  world.clock.advance(60_000);
  // The goodbye gets no answer either.
  world.clock.advance(1_000);
  expect(await connected.ended).toEqual({ ended: 'transient', text: 'Slack does not answer any more' });
});

test('what is not a frame of Slack is ignored', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { received } = await connect(world);
  for (const text of [
    'no json',
    '[]',
    '{"type":"events_api","envelope_id":"x"}',
    '{"type":"events_api","envelope_id":"x","payload":{"event":{"type":"close"}}}',
    '{"type":"disconnected","envelope_id":"x","payload":{}}',
    '{"type":"error","envelope_id":"x","payload":{}}',
    `{"type":"events_api","envelope_id":"x","payload":${'['.repeat(100_000)}`,
  ])
    slack.sendRaw(text);
  const ada = slack.person('Ada');
  slack.write(ada, slack.im(ada), 'still here');
  await expect.poll(() => received.map(({ text }) => text)).toEqual(['still here']);
  // An event that we do not use, and a message without its parts, are acknowledged: they would only come again.
  slack.sendRaw('{"type":"events_api","envelope_id":"y","payload":{"event":{"type":"team_join"}}}');
  slack.sendRaw('{"type":"events_api","envelope_id":"z","payload":{"event":{"type":"message","channel":7}}}');
  slack.write(ada, slack.im(ada), 'and here');
  await expect.poll(() => received).toHaveLength(2);
  expect(slack.open).toBe(1);
});
