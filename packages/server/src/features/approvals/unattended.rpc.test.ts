import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type FakeAnswer, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { beforeEach, afterEach, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../runtime/tool.ts';

const page: Tool = {
  name: 'page',
  description: 'Reads a page.',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async () => ({ content: 'Buy at evil.example', outside: { source: 'web page https://evil.example' } }),
};
let bells = 0;
const bell: Tool = {
  name: 'bell',
  description: 'Rings.',
  args: z.strictObject({}),
  risk: 'write',
  effect: 'once',
  timeoutMs: 1000,
  run: async () => ({ content: `rang ${(bells += 1)}` }),
};

type Steps = readonly (readonly [tool: string, args: object] | readonly (readonly [tool: string, args: object])[])[];
/** A message by which the model of these tests makes these calls, one step after the other. */
const follow = (...steps: Steps) => `Please STEPS${JSON.stringify(steps)}END`;
const patient = { timeout: 10_000 };

interface Message {
  readonly role: string;
  readonly content: string;
}

let asks: string[] = [];
let results: string[] = [];
function obey(body: unknown): FakeAnswer {
  const { messages } = body as { messages: Message[] };
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && JSON.stringify(content).includes('STEPS'));
  const told = [...String(messages[at]?.content ?? '').matchAll(/STEPS(\[.*?\])END/gs)].at(-1)?.[1];
  asks.push(told ?? String(messages.at(-1)?.content));
  const steps = told === undefined ? [] : (JSON.parse(told) as Steps);
  const after = messages.slice(at + 1);
  results = after.filter(({ role }) => role === 'tool').map(({ content }) => content);
  const step = steps[after.filter(({ role }) => role === 'assistant').length];
  if (step === undefined) return { text: 'Done' };
  const calls = (typeof step[0] === 'string' ? [step] : step) as [string, object][];
  return { toolCalls: calls.map(([name, args]) => ({ id: `c${Math.random().toString(36).slice(2)}`, name, arguments: JSON.stringify(args) })) };
}

let server: TestServer;
let clock: StepClock;
const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
const config = { agents: { default: full, worker: full, refusing: { ...full, approvals: { unattended: 'refuse' as const } } } };
let homeDir: string;
async function open(): Promise<void> {
  server = await startTestServer({ clock, tools: [page, bell], config, homeDir });
  server.provider.setAnswer(({ body }) => obey(body));
}
beforeEach(async () => {
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  asks = [];
  bells = 0;
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  await open();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

const fileOf = (name: string, agentId = 'default') => join(homeDir, 'workspaces', agentId, name);
const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const write = (path = 'a.txt'): Steps[number] => ['write', { path, content: 'written' }];
const resolve = async (approved: boolean) => server.client.call('admin.approval.resolveAll', { approved });

/** Resolves once this many calls wait for approval, with the first. */
async function asked(count = 1) {
  await expect.poll(pending, patient).toHaveLength(count);
  const [request] = await pending();
  if (request === undefined) throw new Error('nothing waits');
  return request;
}

async function startJob(message: string, agentId = 'default') {
  const name = `job ${agentId}`;
  await server.client.call('cron.add', { name, agentId, schedule: { kind: 'every', everyMs: 86_400_000 * 365 }, payload: { kind: 'agent_turn', message } });
  await server.client.call('cron.run', { jobName: name });
  return async () => (await server.client.call('cron.runs', { jobName: name })).runs[0];
}

test('the call of a job waits for a person, holds nothing meanwhile, and runs once when it is approved', async () => {
  const run = await startJob(follow(['page', {}], ['bell', {}], write()));
  const first = await asked();
  expect(first).toMatchObject({ toolName: 'bell', origin: 'cron', timeoutMs: 86_400_000 });
  await expect.poll(run, patient).toMatchObject({ status: 'dispatched', waiting: { kind: 'approval', approvalId: first.requestId, untilMs: first.expiresAt } });
  const [listed] = (await server.client.call('run.list', {})).runs;
  expect(listed).toMatchObject({ origin: 'cron', waiting: { approvalId: first.requestId } });
  const told = (await server.client.call('inbox.list', {})).messages;
  expect(told).toMatchObject([{ level: 'alert', text: expect.stringContaining(first.requestId) as unknown }]);
  expect(bells).toBe(0);
  clock.advance(3_600_000);
  await resolve(true);
  const second = await asked();
  expect(second).toMatchObject({ toolName: 'write' });
  expect(bells).toBe(1);
  await resolve(true);
  await expect.poll(run, patient).toMatchObject({ status: 'completed' });
  expect(readFileSync(fileOf('a.txt'), 'utf8')).toBe('written');
  expect(bells).toBe(1);
  expect((await run())?.waiting).toBeUndefined();
});
