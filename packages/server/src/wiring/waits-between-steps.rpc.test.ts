import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type DbCall, interceptDb } from '../features/access/approvals/testing/intercept-db.ts';
import { createBell, createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';

// Decisions and stops that come between two steps of a wait for an approval: each test holds one step until the other has happened.

let clock: StepClock;
let server: TestServer;
let bells = 0;
const plain = (_call: DbCall, run: () => Promise<unknown>) => run();
let around = plain;

beforeAll(async () => {
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  const model = createObeyingModel();
  server = await startTestServer({
    clock,
    tools: [page, createBell(() => (bells += 1))],
    // After its call, a turn whose message asks to stay does not end.
    provider: { answer: ({ body }) => (JSON.stringify(body).includes('"tool_call_id"') && isStaying(body) ? { hang: true } : model.answer(body)) },
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { webhook: ['page', 'bell'] } } },
      webhooks: { mappings: ['one', 'two', 'three', 'four'].map((id) => ({ id, messageTemplate: '{{text}}', sessionKey: id })) },
    },
    db: interceptDb((call, run) => around(call, run), ['write', 'read']),
  });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  bells = 0;
  around = plain;
});

/** Whether the bell was refused, in a turn whose message asks to stay. */
const isStaying = (body: unknown) => JSON.stringify(body).includes('and stay') && JSON.stringify(body).includes('Not run: ');
const ring = follow(['page', {}], ['bell', {}]);
const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const approve = () => server.client.call('admin.approval.resolveAll', { approved: true });
const deliver = (mapping: string, text: string) => server.client.call('webhooks.test', { mapping, payload: { text }, run: true });
const stateOf = async (id: string | null) =>
  (await server.client.call('webhooks.deliveries', {})).deliveries.find(({ deliveryId }) => deliveryId === id)?.state;
const isParking = ({ operation, input }: DbCall) => operation === 'turns.checkpoint' && 'wait' in input;

test('a turn that is approved before it has left its lane continues', async () => {
  const left = Promise.withResolvers<void>();
  let claims = 0;
  let isHeld = false;
  around = async (call, run) => {
    if (call.operation === 'approvals.isPending' && !isHeld) {
      isHeld = true;
      await left.promise;
    }
    const output = await run();
    if (call.operation === 'durable.claim' && isHeld) claims += 1;
    return output;
  };
  const { deliveryId } = await deliver('one', ring);
  await expect.poll(() => isHeld).toBe(true);
  await approve();
  await expect.poll(() => (clock.advance(1_000), claims)).toBeGreaterThan(0);
  left.resolve();
  await expect.poll(async () => (clock.advance(1_000), stateOf(deliveryId))).toBe('done');
  expect(bells).toBe(1);
});

test('run.kill reaches a turn that was approved and has not continued yet', async () => {
  const { deliveryId } = await deliver('two', ring);
  await expect.poll(pending).toHaveLength(1);
  await expect.poll(async () => (await server.client.call('run.list', { state: 'active' })).runs[0]?.waiting?.kind).toBe('approval');
  const [run] = (await server.client.call('run.list', { state: 'active' })).runs;
  let killed: Promise<unknown> | undefined;
  around = async (call, write) => {
    if (call.operation === 'turns.openDurable' && killed === undefined) {
      killed = server.client.call('run.kill', { rootRunId: run?.rootRunId ?? '' });
      await killed.catch(() => {});
    }
    return write();
  };
  await approve();
  await expect.poll(() => killed !== undefined).toBe(true);
  await expect(killed).resolves.toMatchObject({ killed: expect.any(Number) as unknown });
  await expect.poll(async () => (clock.advance(1_000), stateOf(deliveryId))).toBe('failed');
  expect(bells).toBe(0);
});

test('run.kill between the opening of a turn that continues and its first step: its approved call is not run', async () => {
  const { deliveryId } = await deliver('three', ring);
  await expect.poll(async () => (await server.client.call('run.list', { state: 'active' })).runs[0]?.waiting?.kind).toBe('approval');
  const [run] = (await server.client.call('run.list', { state: 'active' })).runs;
  let killed: Promise<unknown> | undefined;
  around = async (call, write) => {
    const output = await write();
    if (call.operation === 'turns.openDurable' && killed === undefined) {
      killed = server.client.call('run.kill', { rootRunId: run?.rootRunId ?? '' });
      await killed.catch(() => {});
    }
    return output;
  };
  await approve();
  await expect.poll(() => killed !== undefined).toBe(true);
  await expect(killed).resolves.toMatchObject({ killed: expect.any(Number) as unknown });
  await expect.poll(async () => (clock.advance(1_000), stateOf(deliveryId))).toMatch(/failed|aborted/);
  expect(bells).toBe(0);
});

test('session.delete while a turn begins to wait does not wait for the rest of the turn', async () => {
  const { conversationRef } = await deliver('four', follow());
  let deleted: Promise<unknown> | undefined;
  around = async (call, run) => {
    if (isParking(call) && deleted === undefined) {
      deleted = server.client.call('session.delete', { conversationRef: conversationRef ?? '' });
      await expect.poll(pending).toEqual([]);
    }
    return run();
  };
  const { deliveryId } = await deliver('four', `${ring} and stay`);
  await expect.poll(() => deleted !== undefined).toBe(true);
  await deleted;
  await expect.poll(async () => (clock.advance(1_000), stateOf(deliveryId))).toBe('failed');
  expect(bells).toBe(0);
});
