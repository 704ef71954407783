import { createStepClock, type FakeAnswer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';

let opened: TestServer[] = [];
afterEach(async () => {
  for (const server of opened) await server[Symbol.asyncDispose]();
  opened = [];
});

/** A server whose provider fails until it is set to answer. */
async function startDown(fault: FakeAnswer = { status: 500 }, more: { readonly maxWaitMs?: number } = {}) {
  const clock = createStepClock();
  let fails = true;
  const server = await startTestServer({
    clock,
    provider: { answer: () => (fails ? fault : undefined) },
    config: {
      agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1 } } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'one' }] },
      ...(more.maxWaitMs !== undefined && { durable: { maxWaitMs: more.maxWaitMs } }),
    },
  });
  opened.push(server);
  const hook = async (text: string) =>
    (await server.client.call('webhooks.test', { mapping: 'hook', payload: { text }, run: true })).deliveryId ?? '';
  const delivery = async (id: string) => (await server.client.call('webhooks.deliveries', {})).deliveries.find(({ deliveryId }) => deliveryId === id);
  const waits = (id: string) => expect.poll(async () => (await delivery(id))?.waiting?.kind).toBe('provider');
  /** Lets virtual time pass until something holds. */
  const until = (holds: () => Promise<boolean>) =>
    expect
      .poll(async () => {
        clock.advance(30_000);
        return holds();
      })
      .toBe(true);
  return { server, clock, hook, delivery, waits, until, recover: () => (fails = false) };
}

test('a webhook that meets an open breaker waits, is shown as waiting with its cause, and runs when the provider answers', async () => {
  const { server, hook, delivery, waits, until, recover } = await startDown();
  const ids = [await hook('first'), await hook('second')];
  for (const id of ids) await waits(id);
  const waiting = { kind: 'provider', cause: expect.stringContaining('500'), retryAtMs: expect.any(Number) };
  expect(await delivery(ids[0] ?? '')).toMatchObject({ state: 'accepted', waiting });
  recover();
  // An answer to any caller makes waiting work due at once.
  await server.client.call('providers.retry', { provider: 'mock' });
  await until(async () => (await delivery(ids[0] ?? ''))?.state === 'done' && (await delivery(ids[1] ?? ''))?.state === 'done');
  expect(await delivery(ids[1] ?? '')).not.toHaveProperty('waiting');
});

test('after the longest wait a webhook ends as failed with its cause, and the inbox is notified', async () => {
  const { server, hook, delivery, until } = await startDown({ status: 401, error: { message: 'Incorrect API key provided' } }, { maxWaitMs: 60_000 });
  const id = await hook('in vain');
  await until(async () => (await delivery(id))?.state === 'failed');
  expect(await delivery(id)).toMatchObject({ errorKind: 'auth', cause: expect.stringContaining('Incorrect API key') });
  const { messages } = await server.client.call('inbox.list', {});
  expect(messages).toMatchObject([{ source: 'webhook', level: 'alert', text: expect.stringContaining('Incorrect API key') }]);
});

test('a webhook waiting in a deleted conversation ends with it', async () => {
  const { server, hook, delivery, waits, until, recover } = await startDown();
  const tried = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' } });
  recover();
  const first = await hook('first');
  await until(async () => (await delivery(first))?.state === 'done');
  const conversationRef = tried.conversationRef ?? '';
  server.provider.setAnswer(() => ({ status: 500 }));
  const id = await hook('second');
  await waits(id);
  await server.client.call('session.delete', { conversationRef });
  server.provider.setAnswer(undefined);
  await until(async () => (await delivery(id))?.state === 'failed');
  expect((await delivery(id))?.errorKind).toBe('deleted');
  await expect(server.client.call('session.history', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });
});

test('a job whose run waits can be removed, and its run does nothing more', async () => {
  const { server, clock, recover } = await startDown();
  await server.client.call('cron.add', { name: 'once', schedule: { kind: 'in', seconds: 5 }, payload: { kind: 'agent_turn', message: 'Once' } });
  clock.advance(6000);
  await expect.poll(async () => (await server.client.call('cron.runs', { jobName: 'once' })).runs[0]?.waiting?.kind).toBe('provider');
  await server.client.call('cron.remove', { jobName: 'once' });
  recover();
  const before = server.provider.requests.length;
  for (let n = 0; n < 20; n += 1) {
    clock.advance(30_000);
    await server.client.call('cron.list', {});
  }
  expect(server.provider.requests.length).toBe(before);
});
