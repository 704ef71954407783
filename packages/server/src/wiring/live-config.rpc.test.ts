import { createHmac } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { RootConfig } from '../config-schema.ts';
import { bare, isLive, step } from '../kernel/config/schema-walk.ts';
import { createLogger, type Logger } from '../kernel/logger.ts';
import type { Tool } from '../runtime/tool.ts';

type Patch = Record<string, unknown>;

interface Row {
  /** Keys, or beginnings of keys, that one value in memory stands for. */
  readonly keys: readonly string[];
  readonly patch: Patch | ((first: Patch) => Patch);
  /** Returns what is seen from outside, before and after the change. */
  readonly see: (server: TestServer) => unknown;
  readonly before: unknown;
  readonly after: unknown;
}

const secret = 'a-shared-secret-of-more-than-32-characters';
const logger: Logger = createLogger({ level: 'info', redact: (line) => line, write: () => {} });
const args = z.strictObject({});
const act: Tool<typeof args> = {
  name: 'act',
  description: 'Acts.',
  args,
  risk: 'outward',
  effect: 'once',
  timeoutMs: 1_000,
  run: async () => ({ content: 'acted' }),
};

const Asked = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.string().nullish() })) });

/** Asks the agent to call a tool, and returns what the tool answered. */
async function callTool(server: TestServer, name: string, input: object = {}): Promise<string> {
  server.provider.queue({ toolCalls: [{ id: 'c1', name, arguments: JSON.stringify(input) }] }, { text: 'Done.' });
  await server.client.call('agent.execute', { message: 'Go', sessionKey: `caller:${Math.random()}` });
  const { messages } = Asked.parse(server.provider.requests.at(-1)?.body);
  return messages.find(({ role }) => role === 'tool')?.content ?? '';
}

async function chat(server: TestServer, model = 'default', more: object = {}): Promise<number> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], ...more });
  return (await post(server, '/v1/chat/completions', body)).status;
}

const post = (server: TestServer, path: string, body: string, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', ...headers },
    body,
  });

/** Waits until `check` holds, however busy the machine is. */
const until = (check: () => boolean | Promise<boolean>) => vi.waitUntil(check, { timeout: 30_000, interval: 10 });

const refusal = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error: { readonly code?: unknown }) => error.code,
  );

/** Sends headers that `fetch` does not let one set. */
function statusWith(server: TestServer, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(`${server.url}/health`, { headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

async function deliver(server: TestServer, path: string): Promise<number> {
  const body = JSON.stringify({ at: Math.random() });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return (await post(server, `/hooks/${path}`, body, { 'x-webhook-signature': signature, 'x-forwarded-for': '203.0.113.9' })).status;
}

const Introspected = z.looseObject({
  result: z.looseObject({ budgets: z.array(z.looseObject({ scope: z.string(), cap: z.string() })) }),
});

/** Returns how many records the trace of a new turn has, and what it keeps of the answer. */
async function traced(server: TestServer) {
  server.provider.queue({ text: 'Kept.' });
  const { traceId } = await server.client.call('agent.execute', { message: 'Go', sessionKey: `traced:${Math.random()}` });
  const found = await server.client.call('obs.trace.get', { ref: traceId }).catch(() => undefined);
  return found?.records.flatMap(({ steps }) => steps.flatMap(({ output }) => output?.preview ?? []));
}

/** Returns the days for which records of each kind are kept. */
const keptDays = async (server: TestServer) => (await server.client.call('gateway.status')).retention?.kept.map(({ days }) => days);

const rows: readonly Row[] = [
  {
    keys: ['retention'],
    patch: { retention: { turnDays: 100, auditDays: 200, browserRecordingDays: 2 }, observability: { persistence: { retentionDays: 3 } } },
    see: keptDays,
    before: [400, 400, 730, 90, 90, 30, 30, 30, 14, 30],
    after: [100, 100, 200, 90, 90, 3, 30, 30, 2, 30],
  },
  { keys: ['observability.persistence'], patch: { observability: { persistence: { enabled: false } } }, see: traced, before: [], after: undefined },
  { keys: ['observability.content'], patch: { observability: { content: 'full' } }, see: traced, before: [], after: ['Kept.'] },
  {
    keys: ['logging'],
    patch: { logging: { level: 'warn', modules: { turns: 'trace' } } },
    see: () => [logger.log.enabled('info'), logger.log.module('turns').enabled('trace')],
    before: [true, false],
    after: [false, true],
  },
  {
    keys: ['budgets'],
    patch: { budgets: { perHourTokens: 1 } },
    see: async (server) => (await server.client.call('capabilities.introspect', {})).budgets.map(({ cap }) => cap),
    before: ['perTurnTokens'],
    after: ['perTurnTokens', 'perHourTokens'],
  },
  {
    keys: ['approvals'],
    patch: { approvals: { rules: [{ tools: ['act'], action: 'deny' }] } },
    see: (server) => callTool(server, 'act'),
    before: 'acted',
    after: expect.stringContaining("operator's rules refuse"),
  },
  {
    keys: ['approvals.mode'],
    patch: { approvals: { mode: 'deny' } },
    see: (server) => callTool(server, 'act'),
    before: 'acted',
    after: expect.stringContaining("operator's rules refuse"),
  },
  {
    keys: ['autonomy'],
    patch: { autonomy: { profile: 'assistant' } },
    see: async (server) => (await server.client.call('run.list', { state: 'active' })).runs.map(({ profile }) => profile),
    before: ['standard'],
    after: ['assistant'],
  },
  {
    keys: ['autonomy.guards'],
    patch: { autonomy: { guards: { outward: { perHour: 1 } } } },
    see: (server) => callTool(server, 'act'),
    before: 'acted',
    after: expect.stringContaining('Not run'),
  },
  {
    keys: ['secrets.readOnly'],
    patch: { secrets: { readOnly: true } },
    see: (server) => refusal(server.client.call('env.set', { key: 'A_KEY', value: 'a value' })),
    before: 'ok',
    after: 'precondition_failed',
  },
  {
    keys: ['durable.maxWaitMs'],
    patch: { durable: { maxWaitMs: 3_600_000 } },
    async see(server) {
      server.provider.queue({ status: 401 });
      await deliver(server, 'patient');
      const newest = async () => (await server.client.call('webhooks.deliveries', { limit: 1 })).deliveries[0];
      await until(async () => (await newest())?.waiting !== undefined);
      const wait = (await newest())?.waiting;
      await server.client.call('providers.retry', { provider: 'mock' });
      await until(async () => (await newest())?.state === 'done');
      return Math.round(((wait?.untilMs ?? 0) - (wait?.sinceMs ?? 0)) / 1_000);
    },
    before: 86_400,
    after: 3_600,
  },
  {
    keys: ['exec'],
    patch: { exec: { enabled: false } },
    see: async (server) => (await server.client.call('tools.list', {})).tools.some(({ name }) => name === 'exec'),
    before: true,
    after: false,
  },
  {
    keys: ['scheduler.heartbeat'],
    patch: { scheduler: { heartbeat: { intervalMs: 60_000 } } },
    see: async (server) => (await server.client.call('heartbeat.get', { agentId: 'default' })).effective.intervalMs,
    before: 1_800_000,
    after: 60_000,
  },
  {
    keys: ['scheduler.cron'],
    patch: { scheduler: { cron: { enabled: false, builtIn: { memoryReview: { enabled: true } } } } },
    see: async (server) => [
      (await server.client.call('cron.status', {})).state,
      (await server.client.call('cron.list', {})).jobs.some(({ name }) => name.includes('review')),
    ],
    before: ['active', false],
    after: ['disabled', true],
  },
  {
    keys: ['scheduler.cron.maxJobs'],
    patch: { scheduler: { cron: { maxJobs: 1 } } },
    async see(server) {
      const schedule = { kind: 'every' as const, everyMs: 86_400_000 };
      const add = (name: string) => server.client.call('cron.add', { name, schedule, payload: { kind: 'delivery', text: 'Hello' } });
      const outcomes = [await refusal(add('first')), await refusal(add('second'))];
      for (const jobName of ['first', 'second']) await refusal(server.client.call('cron.remove', { jobName }));
      return outcomes;
    },
    before: ['ok', 'ok'],
    after: ['ok', 'precondition_failed'],
  },
  {
    keys: ['security.agentToAgent'],
    patch: { security: { agentToAgent: { graphMaxGlobalSubAgents: 7 } } },
    async see(server) {
      const status = await server.client.call('graph.status', {});
      return 'concurrency' in status ? status.concurrency.maxGlobalSubAgents : undefined;
    },
    before: 20,
    after: 7,
  },
  {
    keys: ['security.agentToAgent.allowAgents'],
    patch: { security: { agentToAgent: { allowAgents: ['default'] } } },
    see: (server) => callTool(server, 'agents_list'),
    before: expect.stringContaining('plain'),
    after: expect.not.stringContaining('plain'),
  },
  {
    keys: ['media'],
    patch: { media: { maxFileBytes: 1024 } },
    see: async (server) => (await post(server, '/media?fileName=a.txt', 'x'.repeat(2_000), { 'content-type': 'text/plain' })).status,
    before: 201,
    after: 413,
  },
  {
    keys: ['browser'],
    patch: { browser: { enabled: false } },
    see: async (server) => (await server.client.call('browser.status', {})).reason?.includes('browser.enabled') ?? false,
    before: false,
    after: true,
  },
  {
    keys: ['documents'],
    patch: { documents: { maxCharacters: 1000 } },
    async see(server) {
      const answer = await post(server, '/media?fileName=long.txt', 'word '.repeat(400), { 'content-type': 'text/plain' });
      const { mediaId } = (await answer.json()) as { mediaId: string };
      return (await server.client.call('media.extract_document', { attachment_url: mediaId })).truncated;
    },
    before: false,
    after: true,
  },
  {
    keys: ['tts'],
    patch: { tts: { autoMode: 'always' } },
    see: async (server) => (await server.client.call('tts.auto_check', { response_text: 'Hi' })).shouldSynthesize,
    before: false,
    after: true,
  },
  {
    keys: ['imageGen'],
    patch: { imageGen: { maxPerHour: 3, providers: [{ type: 'openai', apiKey: 'a-key-of-images' }] } },
    see: async (server) => (await server.client.call('media.providers', {})).imageGen?.maxPerHour ?? null,
    before: null,
    after: 3,
  },
  {
    keys: ['channels'],
    patch: { channels: { net: { type: 'irc', host: '127.0.0.1', nick: 'gate', enabled: false } } },
    see: async (server) => (await server.client.call('channels.list', {})).total,
    before: 1,
    after: 2,
  },
  {
    keys: ['links'],
    patch: { links: { maxLinks: 1 } },
    see: async (server) => (await server.client.call('link.process', { text: 'http://127.0.0.1:1/a http://127.0.0.1:1/b' })).errors.length,
    before: 2,
    after: 1,
  },
  {
    keys: ['webSearch'],
    patch: { webSearch: { provider: 'searxng', baseUrl: 'http://127.0.0.1:1', timeoutMs: 1_000 } },
    see: (server) => callTool(server, 'web_search', { query: 'gates' }),
    before: expect.stringContaining('No search provider is configured'),
    after: expect.not.stringContaining('No search provider is configured'),
  },
  {
    keys: ['workspaces'],
    patch: { workspaces: { quotaMb: 1 } },
    see: (server) => {
      const content = 'x'.repeat(500_000);
      const write = (filePath: string) => server.client.call('workspace.writeFile', { agentId: 'default', filePath, content });
      return refusal(['a', 'b', 'c'].reduce((earlier, name) => earlier.then(() => write(`${name}.txt`)), Promise.resolve<unknown>(undefined)));
    },
    before: 'ok',
    after: 'precondition_failed',
  },
  {
    keys: ['agents'],
    patch: { agents: { helper: { name: 'Helper' }, default: { name: 'Changed' } } },
    see: async (server) => [
      (await server.client.call('agents.get', { agentId: 'default' })).config.name,
      await refusal(server.client.call('agents.get', { agentId: 'helper' })),
    ],
    before: ['Gate', 'not_found'],
    after: ['Changed', 'ok'],
  },
  {
    keys: ['providers'],
    patch: { providers: { mock: { apiKey: 'other-key' }, second: { type: 'openai', models: [{ id: 'far' }] } } },
    async see(server) {
      await chat(server);
      return [server.provider.requests.at(-1)?.headers.authorization, (await server.client.call('models.list_providers', {})).providers];
    },
    before: ['Bearer mock-key', ['mock']],
    after: ['Bearer other-key', ['mock', 'second']],
  },
  {
    keys: ['models'],
    patch: { models: { default: 'mock/mock-other' } },
    see: async (server) => (await server.client.call('agent.getOperationModels', { agentId: 'plain' })).primaryModel,
    before: 'mock/mock-fast',
    after: 'mock/mock-other',
  },
  {
    keys: ['models.titles'],
    patch: { models: { titles: false } },
    async see(server) {
      const { conversationRef } = await server.client.call('agent.execute', { message: 'Titled?', sessionKey: `root:${Date.now()}` });
      return (await server.client.call('session.suggest_title', { conversationRef })).stored;
    },
    before: true,
    after: false,
  },
  {
    keys: ['skills'],
    patch: { skills: { unvetted: 'never' } },
    async see(server) {
      const folder = join(server.homeDir, 'workspaces', 'plain', 'skills', 'notes');
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'SKILL.md'), '---\nname: notes\ndescription: Writes notes.\n---\n\nGroup them.\n');
      const found = async () => (await server.client.call('skills.list', { agentId: 'plain' })).skills;
      await until(async () => (await found()).length === 1);
      return (await found()).map(({ state }) => state);
    },
    before: ['active'],
    after: ['rejected'],
  },
  {
    keys: ['mcp.servers'],
    patch: { mcp: { servers: { tools: { transport: 'http', url: 'http://127.0.0.1:1/mcp', allowPrivate: true } } } },
    see: async (server) => (await server.client.call('mcp.list', {})).servers.map(({ name, source }) => [name, source]),
    before: [],
    after: [['tools', 'config']],
  },
  {
    keys: ['webhooks'],
    patch: { webhooks: { token: secret, mappings: [{ id: 'build', match: { path: 'build' }, action: 'wake' }] } },
    see: (server) => deliver(server, 'build'),
    before: 404,
    after: 200,
  },
  {
    keys: ['gateway.rateLimit'],
    patch: { gateway: { rateLimit: { maxRequests: 5_000, windowMs: 30_000 } } },
    see: async (server) => (await post(server, '/v1/chat/completions', '{}')).headers.get('ratelimit-policy'),
    before: '1000000;w=60',
    after: '5000;w=30',
  },
  {
    keys: ['gateway.httpBodyLimitBytes'],
    patch: { gateway: { httpBodyLimitBytes: 1024 } },
    see: (server) => chat(server, 'default', { user: 'x'.repeat(2_000) }),
    before: 400,
    after: 413,
  },
  {
    keys: ['gateway.allowedHosts'],
    patch: { gateway: { allowedHosts: ['gate.example'] } },
    see: (server) => statusWith(server, { host: 'gate.example' }),
    before: 403,
    after: 200,
  },
  {
    keys: ['gateway.publicUrl'],
    patch: { gateway: { publicUrl: 'https://gate.example' } },
    see: (server) => statusWith(server, { host: 'gate.example' }),
    before: 403,
    after: 200,
  },
  {
    keys: ['gateway.corsOrigins'],
    patch: { gateway: { corsOrigins: ['https://app.example'] } },
    see: (server) => statusWith(server, { origin: 'https://app.example' }),
    before: 403,
    after: 200,
  },
  {
    keys: ['gateway.trustedProxies'],
    patch: {
      gateway: { trustedProxies: ['127.0.0.1'] },
      webhooks: { token: secret, mappings: [{ id: 'proxied', match: { path: 'proxied' }, action: 'wake' }] },
    },
    see: async (server) => {
      await deliver(server, 'proxied');
      return (await server.client.call('webhooks.deliveries', { mapping: 'proxied' })).deliveries.map(({ remoteAddress }) => remoteAddress);
    },
    before: [],
    after: ['203.0.113.9'],
  },
  {
    keys: ['gateway.tokens'],
    patch: ({ gateway }) => ({
      gateway: { tokens: [...z.looseObject({ tokens: z.array(z.unknown()) }).parse(gateway).tokens, { id: 'second', secret, scopes: ['rpc'] }] },
    }),
    see: async (server) => (await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })).status,
    before: 401,
    after: 200,
  },
  {
    keys: ['persons'],
    patch: { persons: { ada: { budgets: { perHourTokens: 1 }, rateLimit: { maxRequests: 1 } } } },
    async see(server) {
      const made = await server.client.call('tokens.create', { scopes: ['rpc'], person: 'ada' });
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'capabilities.introspect', params: {} });
      const ask = () => post(server, '/rpc', body, { authorization: `Bearer ${made.secret}` });
      const { result } = Introspected.parse(await (await ask()).json());
      const { status } = await ask();
      await server.client.call('tokens.revoke', { id: made.id });
      return [result.budgets.filter(({ scope }) => scope === 'person').map(({ cap }) => cap), status];
    },
    before: [[], 200],
    after: [['perHourTokens'], 429],
  },
  {
    keys: ['gateway.wsMessageRateLimit', 'gateway.wsMaxInFlight'],
    patch: { gateway: { wsMessageRateLimit: { maxMessages: 1 } } },
    see: async (server) => {
      const socket = server.socket();
      await socket.call('system.ping', {});
      return refusal(socket.call('system.ping', {})).finally(() => socket.close());
    },
    before: 'ok',
    after: 'rate_limited',
  },
  {
    keys: ['gateway.compat'],
    patch: { gateway: { compat: { fields: 'extended', models: { 'gpt-*': 'mock/mock-fast' } } } },
    see: async (server) => [await chat(server, 'default', { top_p: 1 }), await chat(server, 'gpt-9')],
    before: [400, 404],
    after: [200, 200],
  },
];

let server: TestServer;
let first: Patch;
const held = Promise.withResolvers<void>();
let running: Promise<number>;

/** Writes a configuration that differs from the first one, and has it applied. */
async function apply(patch: Patch): Promise<void> {
  writeFileSync(server.configuration.file, JSON.stringify(merged(first, patch)));
  expect((await server.configuration.reload('test')).restart).toEqual([]);
}

function merged(one: unknown, other: unknown): unknown {
  if (!isRecord(one) || !isRecord(other)) return other ?? one;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...keys].map((key) => [key, merged(one[key], other[key])]));
}

const isRecord = (value: unknown): value is Patch => typeof value === 'object' && value !== null && !Array.isArray(value);

beforeAll(async () => {
  server = await startTestServer({
    logger,
    tools: [act],
    config: {
      webhooks: { token: secret, mappings: [{ id: 'patient', match: { path: 'patient' }, model: 'mock/mock-other' }] },
      agents: { default: { model: 'mock/mock-fast', tools: { allow: ['act', 'web_search', 'agents_list'] } }, plain: {} },
    },
  });
  first = JSON.parse(server.configuration.readText());
  server.provider.queue({ text: 'Held.', after: held.promise });
  running = chat(server);
  await until(() => server.provider.served() === 1);
});
afterAll(() => server[Symbol.asyncDispose]());

test.each(rows)('$keys applies while a turn is running', async ({ patch, see, before, after }) => {
  expect(await see(server)).toEqual(before);
  await apply(typeof patch === 'function' ? patch(first) : patch);
  expect(await see(server)).toEqual(after);
  await apply({});
  expect(server.provider.aborted()).toBe(0);
});

test('the turn that ran all the time ends with its answer', async () => {
  held.resolve();
  expect(await running).toBe(200);
});

test('a token that the file no longer has ends with its sockets', async () => {
  const tokens = z.looseObject({ tokens: z.array(z.unknown()) }).parse(first['gateway']).tokens;
  await apply({ gateway: { tokens: [...tokens, { id: 'leaver', secret, scopes: ['rpc'] }] } });
  const socket = server.socket(secret);
  await socket.call('system.ping', {});
  await apply({});
  expect(await refusal(socket.call('system.ping', {}))).not.toBe('ok');
  socket.close();
  expect((await server.client.call('tokens.list', {})).tokens.map(({ id }) => id)).toEqual(['root']);
});

test('a file that is changed by hand applies; one that cannot be used is refused with the place, until it is repaired', async () => {
  const status = async () => {
    const { restartNeeded, configFault } = await server.client.call('gateway.status');
    return { restartNeeded, configFault, name: (await server.client.call('agents.get', { agentId: 'default' })).config.name };
  };
  const errors = server.heard('system:error');
  const write = (patch: Patch) => writeFileSync(server.configuration.file, JSON.stringify(merged(first, patch), null, 1));
  write({ agents: { default: { name: 'By hand' } }, routing: { defaultAgentId: 'plain' } });
  await expect.poll(status).toEqual({ restartNeeded: ['routing.defaultAgentId'], configFault: undefined, name: 'By hand' });
  write({ agents: { default: { nmae: 'Typo' } } });
  const fault = expect.stringMatching(/config\.yaml:\d+:\d+: agents\.default\.nmae: .*"name"/);
  await expect.poll(status).toEqual({ restartNeeded: ['routing.defaultAgentId'], configFault: fault, name: 'By hand' });
  expect(errors).toMatchObject([{ source: 'config', message: fault }]);
  write({});
  await expect.poll(status).toEqual({ restartNeeded: [], configFault: undefined, name: 'Gate' });
});

test('gateway.drainTimeoutMs applies to the next stop', async () => {
  server.provider.queue({ hang: true });
  const served = server.provider.served();
  const aborted = chat(server);
  await until(() => server.provider.served() > served);
  await apply({ gateway: { drainTimeoutMs: 1 } });
  await server.server.drain();
  expect([await aborted, server.provider.aborted()]).toEqual([503, 1]);
});

test('every key that is marked live is in the table', () => {
  const covered = [...rows.flatMap(({ keys }) => keys), 'gateway.drainTimeoutMs'];
  const missing = liveKeys(RootConfig).filter((key) => !covered.some((prefix) => key === prefix || key.startsWith(`${prefix}.`)));
  expect(missing).toEqual([]);
});

/** Lists keys whose change applies without a restart; `*` stands for an id. */
function liveKeys(schema: z.core.$ZodType, path: readonly string[] = []): string[] {
  const thing = bare(schema);
  const names = thing instanceof z.ZodObject ? Object.keys(thing.shape) : thing instanceof z.ZodRecord ? ['*'] : [];
  if (names.length === 0) return isLive(RootConfig, path) ? [path.join('.')] : [];
  return names.flatMap((name) => {
    const part = step(schema, name);
    return part === undefined ? [] : liveKeys(part, [...path, name]);
  });
}
