import { toFragment } from '../../../kernel/json-fragment.ts';
import { createStepClock, startTestServer } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { startGateway, testTokens } from '../../testing/gateway-fixture.ts';
import { openResponseSocket } from '../../testing/response-socket.ts';

const model = 'mock/mock-fast';

it('closes idle sockets with 1001 when the daemon stops, and busy ones when their response has ended', async () => {
  await using server = await startTestServer();
  await using idle = await openResponseSocket(server.url, server.token);
  await using busy = await openResponseSocket(server.url, server.token);
  server.provider.queue({ text: ['one ', 'two'], paceMs: 50 });
  busy.send({ model, input: 'x' });
  await busy.frame();
  const drained = server.server.drain();
  expect(await idle.closed).toBe(1001);
  let last: { type?: string } = {};
  while (last.type !== 'response.completed') last = JSON.parse(await busy.frame()) as typeof last;
  expect(await busy.closed).toBe(1001);
  await drained;
});

it('pauses a response while its client does not read, continues when it does, and cuts a client that reads nothing for 30 s', async () => {
  const piece = 'x'.repeat(16_384);
  const clock = createStepClock();
  let produced = 0;
  let ended = 0;
  await using fixture = await startGateway({
    clock,
    turn: async (_request, _call, sink) => {
      produced = 0;
      try {
        for (let n = 0; n < 2_000; n += 1) {
          sink?.text(toFragment(piece));
          produced += 1;
          if (sink?.flush() === false) await sink.drained();
        }
      } finally {
        ended += 1;
      }
      return { text: 'x' };
    },
  });
  const held = async () => {
    const before = produced;
    await new Promise((resolve) => setTimeout(resolve, 30));
    return before > 0 && produced === before;
  };
  await using socket = await openResponseSocket(fixture.address, testTokens.api);
  socket.socket.pause();
  socket.send({ model: 'm', input: 'x' });
  await expect.poll(held).toBe(true);
  // 32 MB were requested; the system's buffers hold a part of them.
  expect(produced).toBeLessThan(1_500);
  expect(ended).toBe(0);
  socket.socket.resume();
  await expect.poll(() => ended).toBe(1);

  socket.socket.pause();
  socket.send({ model: 'm', input: 'x' });
  await expect.poll(async () => ended === 1 && (await held())).toBe(true);
  clock.advance(30_000);
  await expect.poll(() => fixture.gateway.connections().websocket).toBe(0);
  await expect.poll(() => ended).toBe(2);
});

it('ends and refuses responses of a suspended agent, refuses those of one whose budget is spent, and stays open', async () => {
  await using server = await startTestServer({
    config: { agents: { default: { model }, poor: { model, budgets: { perDayUsd: 0.000001 } } } },
  });
  server.provider.setAnswer(() => ({ text: 'Fine.' }));
  server.provider.queue({ text: Array.from({ length: 500 }, () => 'word '), paceMs: 20 });
  await using socket = await openResponseSocket(server.url, server.token);
  socket.send({ model: 'default', input: 'long' });
  await socket.frame();
  await server.client.call('agents.suspend', { agentId: 'default' });
  let last: { type?: string; response?: { error?: unknown } } = {};
  while (last.type !== 'response.failed') last = JSON.parse(await socket.frame()) as typeof last;
  const asked = server.provider.served();
  expect((await socket.create({ model: 'default', input: 'x' })).error).toMatchObject({
    status: 409,
    error: { message: 'Agent is suspended: default' },
  });
  expect((await socket.create({ model: 'poor', input: 'x' })).error).toMatchObject({ status: 400, error: { code: 'budget_exceeded' } });
  expect(server.provider.served()).toBe(asked);
  await server.client.call('agents.resume', { agentId: 'default' });
  expect((await socket.create({ model: 'default', input: 'x' })).final?.status).toBe('completed');
});
