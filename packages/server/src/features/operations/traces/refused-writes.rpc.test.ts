import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../../runtime/tool.ts';

const opened = Promise.withResolvers<void>();
let isWaiting = false;
const wait: Tool = {
  name: 'wait',
  description: 'Waits.',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 60_000,
  async run() {
    isWaiting = true;
    await opened.promise;
    return { content: 'waited' };
  },
};

let server: TestServer;
let isRefused = false;
/** Operations that fail, while others do not. */
const refusedOperations = new Set<string>();
/** Resolves when the file accepts the next write. */
let held: Promise<void> | undefined;
const writes: string[] = [];
beforeAll(async () => {
  server = await startTestServer({
    tools: [wait],
    config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'minimal', allow: ['wait'] } } } },
    db: (db) => ({
      ...db,
      write: db.write.bind(db),
      read: db.read.bind(db),
      search: db.search.bind(db),
      backup: db.backup.bind(db),
      status: db.status.bind(db),
      async telemetry(operation, input) {
        writes.push(operation.name);
        await held;
        if (isRefused || refusedOperations.has(operation.name)) throw new Error('database or disk is full');
        return db.telemetry(operation, input);
      },
    }),
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const ask = (message: string, sessionKey: string) => server.client.call('agent.execute', { message, sessionKey });
const recordsOf = async (ref: string) => (await server.client.call('obs.trace.get', { ref })).records;

test('while the file of telemetry refuses writes, turns and readers continue, and traces are stored afterwards', async () => {
  const before = await ask('Before', 'ada:full');
  expect(await recordsOf(before.traceId)).toHaveLength(1);
  isRefused = true;
  const during = [];
  for (let n = 0; n < 3; n += 1) during.push(await ask(`Question ${n}`, 'ada:full'));
  expect(await recordsOf(before.traceId)).toHaveLength(1);
  await expect(recordsOf(during[0]?.traceId ?? '')).rejects.toThrow('No trace has this reference');
  expect(await server.client.call('obs.explain', { traceId: before.traceId })).toMatchObject({ traceId: before.traceId, likelyRootCause: null });
  expect(await server.client.call('obs.explain', { sessionKey: 'ada:full' })).toMatchObject({ sessionKey: 'ada:full' });
  await server.client.call('obs.system.health', {});
  const exported = JSON.stringify(await server.client.call('session.export', { sessionKey: 'ada:full' }));
  for (let n = 0; n < 3; n += 1) expect(exported).toContain(`Question ${n}`);
  isRefused = false;
  for (const { traceId } of during) expect(await recordsOf(traceId)).toMatchObject([{ traceId, outcome: 'ok', modelCalls: 1 }]);
});

test('obs.reset deletes records whose batch is pending, and keeps that of a turn that runs', async () => {
  server.provider.queue({ toolCalls: [{ id: 'c1', name: 'wait', arguments: '{}' }] });
  const running = ask('Take your time', 'ada:running');
  await expect.poll(() => isWaiting).toBe(true);
  const accepts = Promise.withResolvers<void>();
  held = accepts.promise;
  writes.length = 0;
  const pending = await ask('Hello', 'ada:pending');
  const reset = server.client.call('obs.reset', {});
  await expect.poll(() => writes).toContain('traces.append');
  accepts.resolve();
  expect((await reset).rowsDeleted.traces).toBeGreaterThan(0);
  await expect(recordsOf(pending.traceId)).rejects.toThrow('No trace has this reference');
  opened.resolve();
  const { traceId } = await running;
  expect(await recordsOf(traceId)).toMatchObject([{ traceId, outcome: 'ok', toolCalls: 1, modelCalls: 2 }]);
});

test('a reset that the file refuses is unavailable, says what was reset, and works when it is repeated', async () => {
  const { traceId } = await ask('Keep me', 'ada:refused');
  isRefused = true;
  const pending = await ask('Keep me, too', 'ada:refused');
  const unavailable = { code: 'unavailable', retryAfterMs: 5_000, message: expect.stringContaining('nothing was reset') };
  await expect(server.client.call('obs.reset', {})).rejects.toMatchObject(unavailable);
  await expect(server.client.call('obs.reset.table', { table: 'traces' })).rejects.toMatchObject(unavailable);
  isRefused = false;
  expect(await recordsOf(traceId)).toHaveLength(1);
  expect(await recordsOf(pending.traceId)).toHaveLength(1);
  refusedOperations.add('obs.dropRecords');
  await expect(server.client.call('obs.reset.table', { table: 'traces' })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('older rows remain'),
  });
  refusedOperations.clear();
  expect((await server.client.call('obs.reset.table', { table: 'traces' })).rowsDeleted).toBeGreaterThanOrEqual(2);
  await expect(recordsOf(traceId)).rejects.toThrow('No trace has this reference');
});
