import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { Agent, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ActivityList, contract } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import { onPostgres, sql } from '@gatehouse/testkit/sql';
import * as z from 'zod';
import { type FakeAnswer, type FakeProvider, type FakeRequest, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { askBackup } from './lib/backup.ts';
import { agentWithTools, keyHere, toolFiles, toolsConfig, useTools } from './lib/canary-tools.ts';
import { mediaConfig, useMedia } from './lib/canary-media.ts';
import { useConfiguration } from './lib/canary-config.ts';
import { sealInto, storedName, useSecrets } from './lib/canary-secrets.ts';
import { sayTo, type Target } from './lib/canary-transports.ts';
import { checklistFile, configOfSchedule, useSchedule } from './lib/canary-schedule.ts';
import { delegationSecurity, ledgerFile, useDelegation } from './lib/canary-delegation.ts';
import { readDashboard, type ReadDashboard } from './lib/canary-dashboard.ts';
import { useDiagnosis } from './lib/canary-diagnosis.ts';
import { type Canaries, createCanaries, createScanner, type Scanner } from './lib/canaries.ts';
import { type Daemon, dashboardDir, pause, spawnDaemon, startDaemon } from './lib/daemon.ts';
import { openEventReader } from './lib/event-reader.ts';
import { filesBelow, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { readsWithoutIds } from './lib/named-things.ts';
import { makeAskedCall, proofConfig } from './lib/provider.ts';
import { randomFrom } from './lib/random.ts';
import { inParallel } from './lib/raw.ts';
import { openSocket, rpcCall } from './lib/rpc.ts';

/**
 * R27: thirty secrets are put wherever secrets can be, also padded and split. None of them leaks: not in what
 * the daemon writes, says, shows or sends to a model.
 */
export interface R27Report {
  readonly canaries: number;
  /** Scanned surfaces, and the bytes on them. */
  readonly surfaces: number;
  readonly megabytes: number;
  /** What the pages of the dashboard showed; undefined where there is no browser, or when they were not read. */
  readonly dashboard: ReadDashboard | undefined;
  /** Surfaces that contain a secret. */
  readonly found: readonly string[];
  /** Expected events that did not happen: a harness that provokes nothing proves nothing. */
  readonly unprovoked: readonly string[];
}

const padding = 2 * 1024 * 1024;
const Minted = z.looseObject({ secret: z.string() });

export async function proveCanaries(options: {
  readonly seed: number;
  /** False skips the failures of providers, which take seconds. */
  readonly failures?: boolean;
  /** True takes secrets only through the configuration and through what is delegated. */
  readonly brief?: boolean;
  /** True reads every page of the dashboard instead of those that show what happened. */
  readonly allPages?: boolean;
  /** True looks at nothing but pages of the dashboard. */
  readonly onlyPages?: boolean;
  readonly broken?: string | readonly string[];
}): Promise<R27Report> {
  const canaries = createCanaries(randomFrom(options.seed));
  const surfaces = new Set<string>();
  const scanner = createScanner(() => canaries.all);
  const scan: Scanner['scan'] = (surface, text, said) => {
    surfaces.add(surface);
    scanner.scan(surface, text, said);
  };
  const unprovoked: string[] = [];
  const home = await makeHome();
  const port = await freePort();
  const keys = {
    said: canaries.make('a provider key that a model says'),
    first: canaries.make('a provider key', 'sk-'),
    env: canaries.make('a provider key from the environment'),
    stored: canaries.make('a provider key of the secret store'),
    further: canaries.make('a further key of a provider', 'sk-ant-'),
  };
  const provider = await startFakeProvider({ answer: (request) => answerWith(request, keys) });
  const collector = await startCollector();
  const operator = canaries.make('GATEHOUSE_TOKEN');
  let daemon: Daemon | undefined;
  try {
    const schedule = configOfSchedule(canaries);
    await writeConfig(home, { ...configOf(canaries, keys, provider.url, collector.url), ...schedule });
    await mkdir(join(home, 'workspaces/default/data'), { recursive: true, mode: 0o700 });
    await writeFile(join(home, 'workspaces/default/notes.txt'), `The key is ${keys.first}, and the other ${keys.env}\n`);
    const rootKey = canaries.known('install.key', '5e'.repeat(32));
    await writeFile(join(home, 'install.key'), `${rootKey}\n`, { mode: 0o600 });
    await sealInto(home, rootKey, keys.stored);
    daemon = await startDaemon({
      home,
      port,
      token: operator,
      env: environmentOf(canaries, keys.env),
      ...(options.broken !== undefined && { broken: options.broken }),
    });
    const said = collect(daemon);
    const events = openEventReader({ port, token: operator, lastEventId: 0 });
    let heard = '';
    events.socket.on('data', (piece: string) => (heard += piece));
    const agent = new Agent({ keepAlive: true });
    const target = { port, token: operator, agent };

    const readPages = () =>
      readDashboard(target, {
        canaries,
        random: randomFrom(options.seed + 1),
        said: keys.said,
        scan,
        unprovoked,
        all: options.allPages === true,
      });
    const report = (dashboard: R27Report['dashboard']): R27Report => ({
      canaries: canaries.all.length,
      surfaces: surfaces.size,
      megabytes: Math.round(scanner.scanned() / 2 ** 20),
      dashboard,
      found: [...new Set([...scanner.found, ...(dashboard?.found ?? [])])],
      unprovoked,
    });
    if (options.onlyPages === true) {
      const dashboard = await readPages();
      events.close();
      agent.destroy();
      return report(dashboard);
    }
    if (options.brief !== true) {
      await handleTokens(target, canaries);
      await useSecrets(target, canaries, scan, unprovoked);
      await speak(target, scan, unprovoked);
      await useTools(target, canaries, keys.first, scan, unprovoked);
      await useMedia(target, scan, unprovoked);
      await useSchedule(target, schedule, { canaries, key: keys.first, home, scan, unprovoked });
    }
    await useConfiguration(target, { canaries, echo: collector.url, scan, unprovoked });
    await useDelegation(target, { canaries, key: keys.first, said: keys.said, home, scan, unprovoked });
    if (options.brief !== true) await guess(port, canaries, scan);
    if (options.failures !== false) await fail(target, { provider, further: keys.further }, scan, unprovoked);
    if (options.failures !== false) await useDiagnosis(target, { home, scan, unprovoked });
    const dashboard = options.brief === true || options.failures === false ? undefined : await readPages();
    await read(target, scan, keys.said);
    if (options.brief === true) {
      events.close();
      agent.destroy();
      return report(dashboard);
    }
    if (!onPostgres) await askBackup(home, join(home, 'backups/canaries.db'));
    for (const until = performance.now() + 5_000; collector.bodies.length === 0 && performance.now() < until;) await pause(50);
    if (collector.bodies.length === 0) unprovoked.push('no traces were exported');
    events.close();
    agent.destroy();
    await daemon.stop();
    scanEvents(heard, scan, keys.said);
    for (const kind of ['secret:modified', 'secret:accessed']) if (!heard.includes(`event: ${kind}`)) unprovoked.push(`no event ${kind}`);
    scan('standard output and error', said());
    for (const body of collector.bodies) scan('traces', body);
    if (!provider.requests.some(({ body }) => JSON.stringify(body)?.includes('Look after the garden') === true))
      unprovoked.push('no heartbeat has asked a model');
    for (const { path, body } of provider.requests) scan(`what the model is sent (${path})`, JSON.stringify(body) ?? '', keys.said);
    await scanHome(home, scan, keys.said);
    scan('doctor', await doctor(home, port));
    return report(dashboard);
  } finally {
    await daemon?.kill();
    await provider.close();
    await collector.close();
    await removeHome(home);
  }
}

/** Everything that the daemon prints from now on, and has printed. */
function collect({ child, stdout, stderr }: Daemon): () => string {
  let text = stdout() + stderr();
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: string) => (text += piece));
  return () => text;
}

function configOf(
  canaries: Canaries,
  { first: key, said, further }: { readonly first: string; readonly said: string; readonly further: string },
  providerUrl: string,
  collectorUrl: string,
) {
  const base = proofConfig(providerUrl, {
    gateway: {
      tokens: ['first', 'second', 'third'].map((id) => ({ id, secret: canaries.make(`a token of config.yaml (${id})`), scopes: ['rpc'] })),
      web: { distPath: dashboardDir() },
    },
    embedding: { provider: 'local', model: 'fake-embedding' },
  });
  const { local } = base.providers;
  return {
    ...base,
    ...toolsConfig(canaries, collectorUrl),
    ...mediaConfig(canaries, collectorUrl),
    security: delegationSecurity,
    // A refused key must not pause the provider here.
    models: { discover: false, cooldownMs: 0 },
    providers: {
      local: {
        ...local,
        apiKey: key,
        headers: {
          'x-gateway-token': canaries.make('a header of a provider'),
          authorization: `Token ${canaries.make('an Authorization header of a provider')}`,
          cookie: `session=${canaries.make('a cookie of a provider')}`,
        },
      },
      second: { ...local, apiKey: '${SECOND_PROVIDER_KEY}' },
      stored: { ...local, apiKey: `\${${storedName}}` },
      fourth: { type: 'azure', baseUrl: `${providerUrl}/azure`, apiKey: said },
      third: {
        ...local,
        type: 'anthropic',
        apiKey: canaries.make('a key in the wire of Anthropic', 'sk-ant-'),
        apiKeys: [further],
        models: [{ id: 'third-model' }],
      },
    },
    agents: {
      default: agentWithTools,
      // Text of the operator, where a key does not belong; no model is called with it.
      idle: { model: 'local/test-model', instructions: `${'pasted '.repeat(9_000)}${key}` },
    },
    observability: {
      traces: { endpoint: `${collectorUrl}/v1/traces`, headers: { 'x-collector-key': canaries.make('a header of the trace collector') } },
    },
  };
}

function environmentOf(canaries: Canaries, second: string): Record<string, string> {
  return {
    SECOND_PROVIDER_KEY: second,
    OPENAI_API_KEY: canaries.make('OPENAI_API_KEY', 'sk-proj-'),
    AWS_SECRET_ACCESS_KEY: canaries.make('AWS_SECRET_ACCESS_KEY'),
    DATABASE_PASSWORD: canaries.make('DATABASE_PASSWORD'),
    PLAIN_LOOKING_VALUE: canaries.make('a variable with a harmless name'),
    BACKUP_URL: `https://user:${canaries.make('a password in an address of the environment')}@127.0.0.1:1/`,
  };
}

/** A token that stays, one that is rotated twice and one that is revoked. */
async function handleTokens(target: Target, canaries: Canaries): Promise<void> {
  const mint = async (id: string, method = 'tokens.create', params: object = { id, scopes: ['rpc'] }): Promise<string> =>
    canaries.known(`a token made over RPC (${id})`, Minted.parse(await rpcCall(target, method, params)).secret);
  const stays = await mint('stays');
  await mint('rotated');
  await mint('rotated, its second secret', 'tokens.rotate', { id: 'rotated' });
  await mint('revoked');
  await rpcCall(target, 'tokens.revoke', { id: 'revoked' });
  await rpcCall({ ...target, token: stays }, 'agent.execute', { message: 'Hello', sessionKey: 'kept:desk' });
}

/** Secrets that open nothing, in every field where a client may put one. */
async function guess(port: number, canaries: Canaries, scan: Scanner['scan']): Promise<void> {
  let host = 0;
  const ask = async (path: string, headers: Record<string, string> = {}, body?: unknown): Promise<void> => {
    host += 1;
    const { text, headers: answered } = await http({
      port,
      path,
      headers,
      localAddress: `127.9.0.${host}`,
      endless: path.startsWith('/api/events'),
      ...(body !== undefined && { body }),
    });
    scan('answers to strangers', text + JSON.stringify(answered));
  };
  await ask('/rpc', bearer(canaries.make('a bearer token that opens nothing')), { jsonrpc: '2.0', id: 1, method: 'system.ping' });
  await ask('/v1/models', { authorization: `Basic ${Buffer.from(`user:${canaries.make('a basic password')}`).toString('base64')}` });
  await ask('/v1/models', { 'x-api-key': canaries.make('x-api-key'), cookie: `token=${canaries.make('a cookie')}` });
  await ask(`/api/events?token=${canaries.make('a token in the query of the event stream')}`);
  await ask(`/media/none.png?access_token=${canaries.make('an access_token in a query')}`);
  await ask(`/nowhere?api_key=${canaries.make('an api_key in a query')}`);
  const socket = await openSocket({ port, token: canaries.make('a token in the query of a socket'), via: 'query', localAddress: '127.9.1.1' });
  scan('sockets of strangers', JSON.stringify(await socket.closed));
}

/** Providers that repeat the key that they were sent: whole, after two megabytes, split, in the middle of a stream. */
const failures = ['echo', 'padded', 'pieces', 'stream', 'html', 'headers'] as const;

function answerWith(request: FakeRequest, keys: { readonly first: string; readonly env: string; readonly said: string }): FakeAnswer | undefined {
  const text = JSON.stringify(request.body) ?? '';
  const secrets = `${keys.first} and ${keys.env}, header ${String(request.headers['x-gateway-token'])}, ${String(request.headers['authorization'] ?? request.headers['x-api-key'])}`;
  const message = `Incorrect API key provided: ${secrets}`;
  const asked = failures.find((kind) => text.includes(`fail by ${kind}`));
  if (asked === 'echo') return { status: 422, error: { message, code: 'unprocessable' } };
  if (asked === 'padded') return { status: 400, error: { message: `${'x'.repeat(padding)} ${message}` } };
  if (asked === 'pieces') return { status: 500, error: { message }, splitBytes: 7 };
  if (asked === 'stream') return { text: ['one ', 'two '], breakAfter: { deltas: 1, by: 'error' }, error: { message }, splitBytes: 7 };
  if (asked === 'html') return { status: 502, body: `<html>${message}</html>`, contentType: 'text/html' };
  if (asked === 'headers') return { status: 429, error: { message }, headers: { 'x-echo': keys.first, 'retry-after': '0' } };
  if (text.includes('\\"tool\\":')) return withKey(makeAskedCall(request), keys.said);
  if (text.includes('Please hold on')) return { hang: true };
  if (text.includes('use your tools') && !text.includes('"role":"tool"'))
    return { toolCalls: [{ id: 'call_1', name: 'read', arguments: '{"path":"notes.txt"}' }] };
  return undefined;
}

/** A model that has learned a key and puts it into the arguments of its calls. */
function withKey(answer: FakeAnswer | undefined, key: string): FakeAnswer | undefined {
  if (answer?.toolCalls === undefined) return answer;
  return { ...answer, toolCalls: answer.toolCalls.map((call) => ({ ...call, arguments: call.arguments.replaceAll(keyHere, key) })) };
}

async function fail(
  target: Target,
  { provider, further }: { readonly provider: FakeProvider; readonly further: string },
  scan: Scanner['scan'],
  unprovoked: string[],
): Promise<void> {
  const cases = ['local/test-model', 'second/test-model', 'stored/test-model', 'third/third-model'].flatMap((model) =>
    failures.map((kind) => ({ model, kind })),
  );
  await inParallel(cases, 6, async ({ model, kind }) => {
    // Each by a separate agent: one that fails repeatedly is paused.
    const agentId = `${model.split('/')[0]}-${kind}`;
    await rpcCall(target, 'agents.create', { agentId, config: { model } });
    for (const stream of [false, true]) {
      const body = { model: agentId, messages: [{ role: 'user', content: `Please fail by ${kind} ${agentId} ${stream}.` }], stream };
      const { text } = await http({
        port: target.port,
        agent: target.agent,
        path: '/v1/chat/completions',
        headers: bearer(target.token),
        body,
        timeoutMs: 60_000,
      });
      scan('answers to completions that failed', text);
      if (!provider.requests.some(({ body: sent }) => JSON.stringify(sent)?.includes(`${kind} ${agentId} ${stream}.`) === true))
        unprovoked.push(`${model} was not asked to fail by ${kind}`);
    }
  });
  if (!provider.requests.some(({ headers }) => headers['x-api-key'] === further)) unprovoked.push('no further key was used');
  for (const method of ['agent.execute', 'models.test']) {
    const params = method === 'models.test' ? { provider: 'local' } : { message: 'Please fail by echo', sessionKey: 'fails:desk' };
    await sayTo(target, scan)(method, params);
  }
}

/** A turn whose tool reads the keys, and what is remembered and summarised of it. */
async function speak(target: Target, scan: Scanner['scan'], unprovoked: string[]): Promise<void> {
  const sessionKey = 'tools:desk';
  const say = sayTo(target, scan);
  await say('agent.execute', { message: 'Please use your tools', sessionKey });
  for (let n = 0; n < 6; n += 1) await say('agent.execute', { message: `Go on with ${n}`, sessionKey });
  const exported = await say('session.export', { sessionKey });
  if (!exported.includes('The key is')) unprovoked.push('no tool has read the keys');
  for (const [method, params] of [
    ['session.compact', { sessionKey }],
    ['memory.review', {}],
    ['memory.lifecycle', {}],
    ['memory.export', {}],
  ] as const)
    if (method in contract) await say(method, params);
}

/** Surfaces where text of agents is shown as they wrote it: the history, its index and its titles, and the tasks that they assign each other. */
const agentText = {
  methods: ['session.list', 'session.search', 'context.conversations', 'subagent.list', 'run.list', 'run.executions'],
  events: ['message:received', 'message:sent', 'session:sub_agent_spawned'],
  // Events are a table of the same database on PostgreSQL alone.
  tables: /^(?:conversation|sub_agent_run|graph_run|session_send|event_batch)$/,
};

async function read(target: Target, scan: Scanner['scan'], said: string): Promise<void> {
  for (const ask of readsWithoutIds('key')) {
    const frame = ask.method === undefined ? undefined : { jsonrpc: '2.0', id: 1, method: ask.method, params: ask.params };
    const { text } = await http({
      port: target.port,
      agent: target.agent,
      path: ask.path ?? '/rpc',
      method: ask.verb ?? 'POST',
      headers: bearer(target.token),
      ...(frame !== undefined && { body: frame }),
    });
    if (ask.path?.startsWith('/api/activity') === true) scanActivity(text, scan, said);
    else scan(`answer of ${ask.method ?? ask.path}`, text, agentText.methods.includes(ask.method ?? '') ? said : undefined);
    for (const [, file = ''] of ask.path === '/' ? text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g) : [])
      scan('assets of the dashboard', (await http({ port: target.port, path: file, agent: target.agent })).text);
  }
}

/** The newest events: the same as in the event stream. */
function scanActivity(text: string, scan: Scanner['scan'], said: string): void {
  for (const { event, payload } of ActivityList().parse(JSON.parse(text)).entries)
    scan('answer of /api/activity', JSON.stringify(payload), agentText.events.includes(event) ? said : undefined);
}

function scanEvents(heard: string, scan: Scanner['scan'], said: string): void {
  const isSaid = (event: string): boolean => agentText.events.includes(/^event: (.*)$/m.exec(event)?.[1] ?? '');
  const { words = [], facts = [] } = Object.groupBy(heard.split('\n\n'), (event) => (isSaid(event) ? 'words' : 'facts'));
  scan('event stream', facts.join('\n'));
  scan('messages in the event stream', words.join('\n'), said);
}

/**
 * Scans the home afterwards, except for the files that rightly hold the secrets. Text that a model has `said` is part of the history, as
 * a person's text is, and of no other table.
 */
async function scanHome(home: string, scan: Scanner['scan'], said: string): Promise<void> {
  const origins = ['config.yaml', 'install.key', 'token', 'workspaces/default/notes.txt', checklistFile, ledgerFile, ...toolFiles].map((name) =>
    join(home, name),
  );
  for (const file of await filesBelow(home))
    if (!origins.includes(file)) {
      const name = file.slice(home.length + 1);
      scan(name, await readFile(file), /\.db/.test(name) ? said : undefined);
    }
  const names = onPostgres
    ? "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_name NOT LIKE 'message%'"
    : "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'message*'";
  for (const row of await sql(home, names)) {
    const name = String(row['name']);
    scan(`table ${name}`, JSON.stringify(await sql(home, `SELECT * FROM ${name}`)), agentText.tables.test(name) ? said : undefined);
  }
}

async function doctor(home: string, port: number): Promise<string> {
  const job = spawnDaemon({ home, port, args: ['--doctor'], token: null, env: { SECOND_PROVIDER_KEY: 'of the doctor' } });
  await job.exited;
  return job.stdout() + job.stderr();
}

/** Accepts traces and keeps their bodies; repeats any other request in an error. */
async function startCollector(): Promise<{ readonly url: string; readonly bodies: Buffer[]; close(): Promise<void> }> {
  const bodies: Buffer[] = [];
  const server = createServer((incoming, outgoing) => {
    const pieces: Buffer[] = [];
    incoming.on('data', (piece: Buffer) => pieces.push(piece));
    incoming.on('end', () => {
      if (incoming.url?.startsWith('/v1/traces') !== true) {
        outgoing.writeHead(500).end(`Not allowed: ${JSON.stringify(incoming.headers)}`);
        return;
      }
      bodies.push(Buffer.concat(pieces));
      outgoing.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
