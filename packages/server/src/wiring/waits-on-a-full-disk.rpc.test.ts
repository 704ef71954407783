import { createStepClock, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { interceptDb } from '../features/access/approvals/testing/intercept-db.ts';
import { createBell, createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';

// A disk that is full from a certain write on, until there is space again.

let clock: StepClock;
let server: TestServer;
let bells: number;
let isFull = false;
/** The write at which the disk becomes full. */
let fillsAt: (operation: string, input: object) => boolean = () => false;
let jobName: string;
let jobs = 0;

beforeAll(async () => {
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  const model = createObeyingModel();
  server = await startTestServer({
    clock,
    tools: [page, createBell(() => (bells += 1))],
    provider: { answer: ({ body }) => model.answer(body) },
    config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } } },
    db: interceptDb(async ({ operation, input }, write) => {
      if (fillsAt(operation, input)) isFull = true;
      if (!isFull) return write();
      throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 });
    }),
  });
});
beforeEach(async () => {
  [bells, isFull, jobName] = [0, false, `ring ${(jobs += 1)}`];
  fillsAt = () => false;
  const payload = { kind: 'agent_turn', message: follow(['page', {}], ['bell', {}]) } as const;
  await server.client.call('cron.add', { name: jobName, schedule: { kind: 'every', everyMs: 86_400_000 * 365 }, payload });
});
afterAll(() => server[Symbol.asyncDispose]());

const run = async () => (await server.client.call('cron.runs', { jobName })).runs[0];
const begin = () => server.client.call('cron.run', { jobName });
const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const approve = () => server.client.call('admin.approval.resolveAll', { approved: true });
const waits = () => expect.poll(async () => (await run())?.waiting?.kind).toBe('approval');

/** Lets time pass until something holds. */
const until = (holds: () => Promise<boolean>) =>
  expect
    .poll(async () => {
      clock.advance(15_000);
      return holds();
    })
    .toBe(true);

/** The disk stays full for some attempts, then there is space. */
async function fillAt(isIt: typeof fillsAt, go: () => Promise<unknown>): Promise<void> {
  fillsAt = isIt;
  await go().catch(() => {});
  await expect.poll(() => isFull).toBe(true);
  for (let n = 0; n < 3; n += 1) {
    clock.advance(15_000);
    await pending();
  }
  fillsAt = () => false;
  isFull = false;
}

test.each([
  ['the request is written', (operation: string) => operation === 'approvals.ask'],
  ['the wait is kept', (operation: string, input: object) => operation === 'turns.checkpoint' && 'wait' in input],
])('when %s: a person is asked about the call once when there is space again, and it runs once', async (_, isIt) => {
  await fillAt(isIt, begin);
  await until(async () => (await pending()).length === 1 && (await run())?.waiting?.kind === 'approval');
  expect(bells).toBe(0);
  await approve();
  await until(async () => (await run())?.status === 'completed');
  expect(bells).toBe(1);
  const asked = (await server.client.call('inbox.list', {})).messages.filter(({ text }) => text.includes('waits for an approval'));
  expect(asked).toHaveLength(jobs);
});

test('a decision that cannot be stored is refused as unavailable, and the request keeps waiting', async () => {
  await begin();
  await waits();
  isFull = true;
  await expect(approve()).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('disk is full') as unknown });
  const [request] = await pending();
  await expect(server.client.call('admin.approval.resolve', { requestId: request?.requestId ?? '', approved: false })).rejects.toMatchObject({
    code: 'unavailable',
  });
  isFull = false;
  expect(await pending()).toMatchObject([{ requestId: request?.requestId }]);
  expect(bells).toBe(0);
  await approve();
  await until(async () => (await run())?.status === 'completed');
  expect([bells, (await run())?.effectsRefused]).toEqual([1, undefined]);
});

test('an acknowledged decision counts once there is space again for what follows it', async () => {
  await begin();
  await waits();
  await fillAt((operation) => operation === 'durable.resume' || operation === 'approvals.ask', approve);
  await until(async () => (await run())?.status === 'completed');
  expect([bells, (await run())?.effectsRefused, await pending()]).toEqual([1, undefined, []]);
});
