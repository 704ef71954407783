import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type FakeAnswer, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

// Work does not wait for a model longer than necessary: not over a restart, not over a change of its agent's model.

let clock: StepClock;
let server: TestServer;
let homeDir: string;
let answer: (model: string) => FakeAnswer;
const cooling: FakeAnswer = { status: 429, headers: { 'retry-after': '3600' } };

async function start(): Promise<void> {
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: ({ body }) => answer((body as { model: string }).model) },
    config: {
      agents: { default: { model: 'mock/mock-fast' } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: '{{text}}' }] },
    },
  });
}

beforeEach(async () => {
  clock = createStepClock();
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-waits-'));
  answer = () => cooling;
  await start();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

const states = async () =>
  (await server.client.call('webhooks.deliveries', {})).deliveries.map(({ state, waiting }) => (waiting === undefined ? state : waiting.kind));

/** Queues this many deliveries, each waiting for its model for an hour. */
async function accept(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: `text ${n}` }, run: true });
  await expect.poll(states).toEqual(Array.from({ length: count }, () => 'provider'));
}

async function restart(): Promise<void> {
  await server[Symbol.asyncDispose]();
  await start();
}

const model = async (name: string) => void (await server.client.call('agents.update', { agentId: 'default', config: { model: name } }));

test('after a restart the first answer to waiting work wakes all the rest, without any delay', async () => {
  await accept(4);
  answer = () => ({ text: 'Done.' });
  await restart();
  await expect.poll(states).toEqual(['done', 'done', 'done', 'done']);
});

test('after a restart waiting work is tried one by one, while its provider is still down', async () => {
  await accept(4);
  answer = () => ({ status: 500 });
  await restart();
  await expect.poll(() => server.provider.served()).toBe(1);
  await expect.poll(states).toEqual(['provider', 'provider', 'provider', 'provider']);
  expect(server.provider.served()).toBe(1);
  clock.advance(1_000);
  await expect.poll(() => server.provider.served()).toBe(2);
  clock.advance(2_000);
  await expect.poll(() => server.provider.served()).toBe(4);
});

test.each([
  ['an answer to somebody else', async () => void (await server.client.call('agent.execute', { message: 'Hello' }))],
  ['providers.retry', async () => void (await server.client.call('providers.retry', { provider: 'mock' }))],
])('after a restart %s wakes what waits, though this process never saw the model fail', async (_title, wake) => {
  await accept(2);
  // The item that is tried at the start hangs.
  answer = () => ({ hang: true });
  await restart();
  await expect.poll(() => server.provider.served()).toBe(1);
  answer = () => ({ text: 'Done.' });
  await wake();
  await expect.poll(async () => (await states()).filter((state) => state === 'done')).toHaveLength(1);
});

test('an agent that gets another model continues at once with work that waited for the former one', async () => {
  answer = (name) => (name === 'mock-fast' ? cooling : { text: 'Done.' });
  await accept(2);
  await server.client.call('agents.update', { agentId: 'default', config: { temperature: 0.5 } });
  expect(await states()).toEqual(['provider', 'provider']);
  await model('mock/mock-other');
  await expect.poll(states).toEqual(['done', 'done']);
});
