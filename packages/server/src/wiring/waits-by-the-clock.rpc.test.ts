import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { interceptDb } from '../features/access/approvals/testing/intercept-db.ts';
import { createBell, createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';

// A wait for an approval while somebody sets the clock, during the wait or over a restart.

const yearsMs = 3 * 365 * 86_400_000;
const hourMs = 3_600_000;

let homeDir: string;
let clock: StepClock;
let server: TestServer;
let bells: number;
let claims: number;
let model: ReturnType<typeof createObeyingModel>;

async function start(): Promise<void> {
  model = createObeyingModel();
  server = await startTestServer({
    homeDir,
    clock,
    tools: [page, createBell(() => (bells += 1))],
    provider: { answer: ({ body }) => model.answer(body) },
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { webhook: ['page', 'bell'] } } },
      webhooks: { mappings: ['one', 'two'].map((id) => ({ id, messageTemplate: '{{text}}', sessionKey: id })) },
    },
    db: interceptDb((call, run) => {
      if (call.operation === 'durable.claim') claims += 1;
      return run();
    }),
  });
}

async function restart(setBy: number): Promise<void> {
  await server[Symbol.asyncDispose]();
  clock.step(setBy);
  await start();
}

/** The newest delivery, or one before it. */
const delivery = async (before = 0) => (await server.client.call('webhooks.deliveries', {})).deliveries[before];
const ask = (mapping = 'one') => server.client.call('webhooks.test', { mapping, payload: { text: follow(['page', {}], ['bell', {}]) }, run: true });
const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const waits = () => expect.poll(async () => (await delivery())?.waiting?.kind).toBe('approval');
/** Lets time pass while the work waits: by minutes first, for checks that run soon. */
async function pass(hours: number): Promise<void> {
  for (const minutes of [1, 1, 1, 57, ...Array.from({ length: hours - 1 }, () => 60)]) {
    clock.advance(minutes * 60_000);
    await waits();
  }
  expect(await pending()).toHaveLength(1);
}
beforeEach(async () => {
  [bells, claims] = [0, 0];
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-waits-'));
  await start();
  await ask();
  await waits();
  claims = 0;
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

test('setting the clock forward by years ends no wait, and approvals count, also after it was corrected', async () => {
  clock.step(yearsMs);
  await pass(1);
  await restart(0);
  await pass(1);
  // A request made under it has its time-out from then on.
  await ask('two');
  await expect.poll(pending).toHaveLength(2);
  const [first, second] = await pending();
  await server.client.call('admin.approval.resolve', { requestId: second?.requestId ?? '', approved: true });
  await expect.poll(() => delivery()).toMatchObject({ state: 'done' });
  expect([bells, (await delivery())?.effectsRefused]).toEqual([1, undefined]);
  await restart(-yearsMs);
  await expect.poll(async () => (await pending()).map(({ requestId }) => requestId)).toEqual([first?.requestId]);
  expect(claims).toBeLessThan(20);
  await server.client.call('admin.approval.resolveAll', { approved: true });
  await expect.poll(() => delivery(1)).toMatchObject({ state: 'done' });
  expect([bells, (await delivery(1))?.effectsRefused]).toEqual([2, undefined]);
});

test('with the clock set back by years the time-out counts elapsed time, and its end is reported', async () => {
  clock.step(-yearsMs);
  await pass(1);
  await restart(0);
  await pass(1);
  expect(claims).toBeLessThan(10);
  clock.advance(24 * hourMs);
  await expect.poll(() => delivery()).toMatchObject({ state: 'done', effectsRefused: 1 });
  expect([bells, await pending()]).toEqual([0, []]);
  expect(model.results.join()).toContain('nobody approved this call of "bell" in time');
});
