import type { ParamsInput, RootCauseCode } from '@gatehouse/contract';
import { type FakeAnswer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Tool, ToolResult } from '../../../../runtime/tool.ts';
import { canary } from '../testing/records.ts';

function tool(name: string, run: (signal: AbortSignal) => Promise<ToolResult>, timeoutMs = 10_000): Tool {
  return {
    name,
    description: 'For tests.',
    args: z.looseObject({}),
    risk: 'read',
    effect: 'pure',
    timeoutMs,
    run: (_args, { signal }) => run(signal),
  };
}

const untilStopped = (signal: AbortSignal) =>
  new Promise<ToolResult>((resolve) => signal.addEventListener('abort', () => resolve({ content: 'stopped' }), { once: true }));

const tools: readonly Tool[] = [
  tool('fails', async () => ({ content: `It broke: ${canary}`, isError: true })),
  tool('works', async () => ({ content: `All well: ${canary}` })),
  tool('late', untilStopped, 50),
  tool('hangs', untilStopped),
  tool('asks', async () => ({ content: 'asked' })),
  tool('forbidden', async () => ({ content: 'never' })),
  tool('uninstalled', async () => ({ content: canary, isError: true, traced: { errorKind: 'missing_dependency', facts: { exitCode: 127 } } })),
  tool('mcp__notes--find', async () => {
    throw new AppError('unavailable', `The MCP server "notes" gave no usable answer ${canary}`);
  }),
];

const refused = (status: number, more: object = {}): FakeAnswer => ({ status, error: { message: canary, ...more } });
const calls = (...names: readonly string[]): FakeAnswer => ({
  toolCalls: names.map((name, at) => ({ id: `c${at}`, name, arguments: JSON.stringify({ at, text: canary }) })),
});
const done: FakeAnswer = { text: `Done ${canary}` };

/** What the model answers to a message with the name, step by step; the last one is repeated. */
const scripts: Readonly<Record<string, readonly FakeAnswer[]>> = {
  auth: [refused(401)],
  billing: [refused(402, { code: 'insufficient_quota' })],
  limit: [refused(429)],
  overload: [refused(529)],
  broken: [refused(500)],
  request: [refused(400)],
  length: [refused(400, { code: 'context_length_exceeded' })],
  filter: [{ text: '', finishReason: 'content_filter' }],
  empty: [{ text: '' }],
  hang: [{ hang: true }],
  five: [calls('fails', 'fails', 'fails', 'fails', 'fails'), done],
  four: [calls('fails', 'fails', 'fails', 'fails', 'works'), done],
  late: [calls('late'), done],
  long: [calls('hangs'), done],
  loop: [calls('works')],
  ask: [calls('asks'), done],
  forbid: [calls('forbidden'), done],
  install: [calls('uninstalled'), done],
  mcp: [calls('mcp__notes--find'), done],
  fine: [calls('works'), done],
};

let server: TestServer;
const asked = new Map<string, number>();
beforeAll(async () => {
  const agent = {
    model: 'mock/mock-fast',
    tools: { profile: 'minimal' as const, allow: tools.map(({ name }) => name) },
    circuitBreaker: { failures: 1000 },
  };
  server = await startTestServer({
    tools,
    config: {
      providers: { gone: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'k', models: [{ id: 'm' }] } },
      agents: {
        default: agent,
        gone: { ...agent, model: 'gone/m' },
        short: { ...agent, maxSteps: 2 },
        poor: { ...agent, budgets: { perTurnTokens: 10 } },
        hasty: { ...agent, modelTimeoutMs: 1000 },
        brief: { ...agent, turnTimeoutMs: 1000 },
        frail: { ...agent, circuitBreaker: { failures: 2, resetMs: 60_000 } },
      },
      approvals: {
        rules: [
          { tools: ['asks'], action: 'ask' },
          { tools: ['forbidden'], action: 'deny' },
        ],
      },
    },
    provider: {
      answer: ({ body }) => {
        const text = JSON.stringify(body);
        const [, name = '', key = ''] = /SCRIPT (\w+) (\w+)/.exec(text) ?? [];
        const step = asked.get(key) ?? 0;
        asked.set(key, step + 1);
        const script = scripts[name] ?? [done];
        return script[Math.min(step, script.length - 1)];
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

let sessions = 0;
async function run(script: string, agentId = 'default', signal?: AbortSignal) {
  sessions += 1;
  const sessionKey = `user${sessions}:web`;
  const turn = server.client.call(
    'agent.execute',
    { message: `SCRIPT ${script} k${sessions} ${canary}`, agentId, sessionKey },
    signal === undefined ? {} : { signal },
  );
  return { sessionKey, turn };
}

async function explained(params: ParamsInput<'obs.explain'>, code: RootCauseCode | null): Promise<void> {
  const text = JSON.stringify(await server.client.call('obs.explain', params));
  expect(JSON.parse(text).likelyRootCause?.code ?? null).toBe(code);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(6 * 1024);
  expect(text).not.toMatch(/CANARY|Oma/u);
  expect(JSON.stringify(await server.client.call('obs.explain', params))).toBe(text);
}

test.each([
  ['auth', 'default', 'provider_credentials_refused'],
  ['fine', 'default', null],
  ['limit', 'default', 'provider_rate_limited'],
] as const)('a provider that refuses the key differs from one that answers: %s of %s is %s', async (script, agentId, code) => {
  await server.client.call('providers.retry', { provider: 'mock' });
  const { sessionKey, turn } = await run(script, agentId);
  await turn;
  await explained({ sessionKey }, code);
});

test.each([
  ['billing', 'default', 'provider_billing_refused'],
  ['overload', 'default', 'provider_overloaded'],
  ['broken', 'default', 'provider_failed'],
  ['fine', 'gone', 'provider_unreachable'],
  ['request', 'default', 'provider_rejected_request'],
  ['length', 'default', 'context_exhausted'],
  ['filter', 'default', 'content_filtered'],
  ['empty', 'default', 'output_starved'],
  ['hang', 'hasty', 'provider_timeout'],
  ['long', 'brief', 'prompt_timeout'],
  ['fine', 'poor', 'budget_exceeded'],
  ['loop', 'short', 'max_steps_reached'],
  ['loop', 'default', 'context_loop'],
  ['five', 'default', 'breaker_opened_repeated_failure'],
  ['four', 'default', 'tool_failed'],
  ['late', 'default', 'tool_timeout'],
  ['forbid', 'default', 'tool_denied_by_policy'],
  ['install', 'default', 'exec_dependency'],
  ['mcp', 'default', 'mcp_server_unavailable'],
  ['fine', 'default', null],
] as const)('the script %s of the agent %s is explained as %s', async (script, agentId, code) => {
  await server.client.call('providers.retry', { provider: 'mock' });
  const { sessionKey, turn } = await run(script, agentId);
  await turn;
  await explained({ sessionKey }, code);
});

test('a breaker that opens differs from one that is open', async () => {
  await server.client.call('providers.retry', { provider: 'mock' });
  const codes = ['provider_failed', 'breaker_opened_repeated_failure', 'model_circuit_open'] as const;
  for (const code of codes) {
    const { sessionKey, turn } = await run('broken', 'frail');
    await turn;
    await explained({ sessionKey }, code);
  }
  await server.client.call('providers.retry', { provider: 'mock' });
});

test('a call with a pending decision, one that is denied, and one of a caller that left', async () => {
  const { sessionKey, turn } = await run('ask');
  const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
  await expect.poll(async () => (await pending()).length).toBe(1);
  await explained({ sessionKey }, 'approval_waiting');
  const [request] = await pending();
  await server.client.call('admin.approval.resolve', { requestId: request?.requestId ?? '', approved: false });
  await turn;
  await explained({ sessionKey }, 'approval_denied');

  const left = new AbortController();
  const { sessionKey: second, turn: aborted } = await run('long', 'default', left.signal);
  const ended = aborted.then(
    () => 'answered',
    () => 'aborted',
  );
  await expect.poll(() => asked.get(`k${sessions}`)).toBe(1);
  left.abort();
  expect(await ended).toBe('aborted');
  await expect.poll(async () => (await server.client.call('obs.explain', { sessionKey: second })).outcome?.endReason).toBe('aborted');
  await explained({ sessionKey: second }, 'turn_aborted');
});

test('sub-agents and graphs are explained by their root run', async () => {
  // The announcement of an ended run is a delivery, with a record in the conversation of the run.
  const announced = (count: number) =>
    expect.poll(async () => (await server.client.call('inbox.list', {})).messages.filter(({ source }) => source === 'subagent').length).toBe(count);
  const { runId, rootRunId } = await server.client.call('session.spawn', { task: `SCRIPT request s1 ${canary}` });
  await server.client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 });
  await announced(1);
  await explained({ rootRunId }, 'provider_rejected_request');
  const killed = await server.client.call('session.spawn', { task: `SCRIPT hang s2 ${canary}` });
  await expect.poll(() => asked.get('s2')).toBe(1);
  await server.client.call('run.kill', { rootRunId: killed.rootRunId });
  await server.client.call('subagent.wait', { runIds: [killed.runId], timeoutMs: 10_000 });
  await announced(2);
  await explained({ rootRunId: killed.rootRunId }, 'run_killed');
  const { graphId } = await server.client.call('graph.execute', { nodes: [{ node_id: 'one', task: `SCRIPT filter g1 ${canary}` }] });
  await expect.poll(async () => (await server.client.call('graph.runs', {})).runs.find((one) => one.graphId === graphId)?.status).toBe('failed');
  const { records } = await server.client.call('obs.trace.get', { ref: graphId });
  await explained({ rootRunId: records[0]?.rootRunId ?? '' }, 'content_filtered');
});
