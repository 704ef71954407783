import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyHome, createStepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type DbCall, interceptDb } from '../features/access/approvals/testing/intercept-db.ts';
import { createBell, createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';

// A kill leaves the home as it is at that moment: one job is run to its end, and at each point of its wait its home is copied.

const job = 'ring';
const points = [
  'before the request is written',
  'after the request, before the work waits',
  'while the work waits',
  'after the decision',
  'after the decision is used, before the call runs',
  'while the call runs',
  'after the call ran, before its result is kept',
  'after the result is kept',
] as const;
type Point = (typeof points)[number];

let folder: string;
let homeDir: string;
const copyOf = (point: Point) => join(folder, String(points.indexOf(point)));

async function start(rings: () => Promise<number> | number, db?: TestServerOptions['db']): Promise<TestServer> {
  const model = createObeyingModel();
  return startTestServer({
    homeDir,
    clock: createStepClock(Date.UTC(2026, 8, 21, 12)),
    tools: [page, createBell(rings)],
    provider: { answer: ({ body }) => model.answer(body) },
    config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } } },
    ...(db !== undefined && { db }),
  });
}

const pending = async ({ client }: TestServer) => (await client.call('admin.approval.pending', {})).requests;
const run = async ({ client }: TestServer) => (await client.call('cron.runs', { jobName: job })).runs[0];
const approve = ({ client }: TestServer) => client.call('admin.approval.resolveAll', { approved: true });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-killed-waits-'));
  homeDir = join(folder, 'home');
  const taken = new Set<Point>();
  let copying = Promise.resolve();
  /** Nothing is written meanwhile. */
  async function take(point: Point): Promise<void> {
    if (taken.has(point)) return;
    taken.add(point);
    copying = copyHome(homeDir, copyOf(point));
    await copying;
  }
  const before = ({ operation, input }: DbCall): Point | undefined => {
    if (operation === 'approvals.ask') return 'before the request is written';
    return operation === 'turns.checkpoint' && 'closed' in input && taken.has('while the call runs')
      ? 'after the call ran, before its result is kept'
      : undefined;
  };
  const after = ({ operation, input }: DbCall, output: unknown): Point | undefined => {
    switch (operation) {
      case 'approvals.ask':
        return (output as { kind: string }).kind === 'allowed'
          ? 'after the decision is used, before the call runs'
          : 'after the request, before the work waits';
      case 'approvals.decide':
        return 'after the decision';
      case 'turns.checkpoint':
        if ('wait' in input) return 'while the work waits';
        return 'closed' in input && taken.has('while the call runs') ? 'after the result is kept' : undefined;
      default:
        return undefined;
    }
  };
  const db = interceptDb(async (call, write) => {
    await copying;
    const first = before(call);
    if (first !== undefined) await take(first);
    const output = await write();
    const then = after(call, output);
    if (then !== undefined) await take(then);
    return output;
  });
  await using server = await start(async () => (await take('while the call runs'), 1), db);
  const payload = { kind: 'agent_turn', message: follow(['page', {}], ['bell', {}]) } as const;
  await server.client.call('cron.add', { name: job, schedule: { kind: 'every', everyMs: 86_400_000 * 365 }, payload });
  await server.client.call('cron.run', { jobName: job });
  await vi.waitFor(async () => expect((await run(server))?.waiting?.kind).toBe('approval'), { timeout: 15_000 });
  await approve(server);
  await vi.waitFor(async () => expect((await run(server))?.status).toBe('completed'), { timeout: 15_000 });
  expect([...taken]).toEqual(points);
}, 20_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const states: Readonly<Record<Point, { readonly asked: boolean; readonly rings: 0 | 1; readonly decisions: 1 | 2; readonly status?: 'unknown' }>> = {
  'before the request is written': { asked: true, rings: 1, decisions: 1 },
  'after the request, before the work waits': { asked: true, rings: 1, decisions: 1 },
  'while the work waits': { asked: true, rings: 1, decisions: 1 },
  'after the decision': { asked: false, rings: 1, decisions: 1 },
  // A decision is used once, and nobody knows here that it had no effect.
  'after the decision is used, before the call runs': { asked: true, rings: 1, decisions: 2 },
  'while the call runs': { asked: false, rings: 0, decisions: 1, status: 'unknown' },
  'after the call ran, before its result is kept': { asked: false, rings: 0, decisions: 1, status: 'unknown' },
  'after the result is kept': { asked: false, rings: 0, decisions: 1 },
};

test.each(points)('a process that is killed %s: a person is asked about the call once, and it runs at most once', async (point) => {
  const { asked, rings, decisions, status = 'completed' } = states[point];
  let rung = 0;
  await rm(homeDir, { recursive: true });
  await rename(copyOf(point), homeDir);
  await using server = await start(() => (rung += 1));
  if (asked) {
    await expect.poll(() => pending(server)).toHaveLength(1);
    await expect.poll(async () => (await run(server))?.waiting?.kind).toBe('approval');
    await approve(server);
  }
  await expect.poll(async () => (await run(server))?.status).toBe(status);
  expect(rung).toBe(rings);
  expect(await pending(server)).toEqual([]);
  expect((await server.client.call('obs.audit.query', { actionType: 'approval.resolve' })).rows).toHaveLength(decisions);
  const notices = (await server.client.call('inbox.list', {})).messages.filter(({ text }) => text.includes('waits for an approval'));
  expect(notices).toHaveLength(decisions);
});
