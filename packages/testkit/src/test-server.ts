import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Client, createClient, createSocket, type GatehouseSocket } from '@gatehouse/client';
import type { EventKind, EventPayload, TokenCompat, TokenScope } from '@gatehouse/contract';
import type { Clock, Configuration, createServer, EventBus, McpOffer, RootConfig, ServerHandle, ServerOptions, Tool } from '@gatehouse/server';
import type * as z from 'zod';
import { type FakeProvider, type FakeProviderOptions, startFakeProvider } from './fake-provider.ts';
import { takeStorageThread } from './storage-threads.ts';

export interface TestServerOptions {
  /** Merged over the test's own configuration, section by section. */
  readonly config?: z.input<typeof RootConfig>;
  readonly provider?: FakeProviderOptions;
  readonly clock?: Clock;
  /** Tools in addition to the built-in ones. */
  readonly tools?: readonly Tool[];
  /** Serves repository archives instead of GitHub. */
  readonly archives?: NonNullable<NonNullable<Parameters<typeof createServer>[0]['overrides']>['archives']>;
  /** Names and addresses of the test's own web servers: no other non-public address is reached. */
  readonly egress?: NonNullable<NonNullable<Parameters<typeof createServer>[0]['overrides']>['egress']>;
  /** Fetches lists of models; without it none are requested. */
  readonly probe?: NonNullable<NonNullable<Parameters<typeof createServer>[0]['overrides']>['probe']>;
  /** What MCP clients are offered instead of the agents. */
  readonly mcpOffer?: McpOffer;
  /** Variables of the daemon; with them `${NAME}` in the configuration is a reference. */
  readonly env?: Readonly<Record<string, string>>;
  /** Live secrets, which the redactor removes everywhere. */
  readonly secrets?: readonly string[];
  readonly logger?: ServerOptions['logger'];
  readonly freeSpace?: NonNullable<Parameters<typeof createServer>[0]['overrides']>['freeSpace'];
  /** Wraps the server's database. */
  readonly db?: NonNullable<Parameters<typeof createServer>[0]['overrides']>['db'];
  /** An existing home; it is kept when the server stops. */
  readonly homeDir?: string;
}

/** A whole server in the test's process, on a free port, with its own home and a fake provider. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** Secret of the token `root`, scope `*`. */
  readonly token: string;
  readonly client: Client;
  readonly provider: FakeProvider;
  readonly homeDir: string;
  readonly server: ServerHandle;
  /** Its configuration; the file is that of the home. */
  readonly configuration: Configuration<z.output<typeof RootConfig>>;
  readonly bus: EventBus;
  /** Creates a token and a client for it. */
  as(
    scopes: readonly TokenScope[],
    limits?: { readonly agents?: string[]; readonly compat?: TokenCompat },
  ): Promise<Client & { readonly token: string; readonly tokenId: string }>;
  /** The same methods over a WebSocket, as `root` or with another token; the caller closes it. */
  socket(token?: string): GatehouseSocket;
  /** Collects the payloads of one kind from now on. */
  heard<K extends EventKind>(kind: K): EventPayload<K>[];
}

/** Created by tools/test-threads.ts for the whole test run. */
const bundledStorageWorker = process.env['GATEHOUSE_TEST_STORAGE_WORKER'];
const emptyData = process.env['GATEHOUSE_TEST_DATA'];
const engine = process.env['GATEHOUSE_TEST_DB'] === 'postgres' ? 'postgres' : 'sqlite';

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  // Tests that take only a clock or a fake from the testkit do not load the whole server.
  const [{ createRedactor, createServer, FileConfiguration, homePaths, InstallKey, rawDocument, SecretVault, silentLog }, { events }] =
    await Promise.all([import('@gatehouse/server'), import('@gatehouse/contract')]);
  const provider = await startFakeProvider({ deltas: 5, ...options.provider });
  const homeDir = options.homeDir ?? (await mkdtemp(join(tmpdir(), 'gatehouse-test-')));
  await mkdir(homeDir, { recursive: true });
  if (emptyData !== undefined && options.homeDir === undefined) await cp(emptyData, join(homeDir, 'data'), { recursive: true });
  const database = engine === 'postgres' ? await openDatabase(homeDir) : undefined;
  const token = `test_${randomBytes(32).toString('base64url')}`;
  const given = options.config ?? {};
  // An earlier server of this home may have changed its agents in the file.
  const earlier = await readFile(homePaths(homeDir).configFile, 'utf8').catch(() => '');
  const kept = rawDocument(earlier) as z.input<typeof RootConfig> | undefined;
  const written = {
    ...given,
    gateway: {
      port: 0,
      rateLimit: { maxRequests: 1_000_000 },
      wsMessageRateLimit: { maxMessages: 1_000_000 },
      ...given.gateway,
      tokens: [{ id: 'root', secret: token, scopes: ['*'] }, ...(given.gateway?.tokens ?? [])],
    },
    providers: {
      mock: {
        type: 'openai-compatible',
        baseUrl: provider.url,
        apiKey: 'mock-key',
        models: [
          { id: 'mock-fast', cost: { input: 1, output: 2 } },
          { id: 'mock-other', contextWindow: 4096, maxTokens: 512, cost: { input: 3, output: 6 } },
        ],
      },
      ...given.providers,
    },
    agents: { default: { model: 'mock/mock-fast' }, ...kept?.agents, ...given.agents },
    ...(database !== undefined && { storage: { driver: 'postgres', url: database.url, poolSize: 4, ...given.storage } }),
  };
  const paths = homePaths(homeDir);
  const file = paths.configFile;
  // JSON is YAML; a text that looks like a reference is a text.
  const text = JSON.stringify(written, null, 2);
  await writeFile(file, options.env === undefined ? text.replaceAll('${', '$${') : text);
  const { hide } = createRedactor(options.secrets);
  const redactor = { redact: hide, hide, add() {}, replace() {} };
  const read = () => ({ text: readFileSync(file, 'utf8'), protect: () => undefined });
  const configuration = new FileConfiguration({ file, read, env: options.env ?? {}, flags: {}, redactor, log: silentLog });
  const installKey = new InstallKey(Buffer.alloc(32, 7));
  const vault = new SecretVault({ file: paths.secretsFile, key: installKey, redactor });
  configuration.useSecrets((name) => vault.get(name));
  const { loaded } = configuration.load();
  configuration.begin(loaded);
  const { config } = loaded;
  const firstToken = (await readFile(paths.tokenFile, 'utf8').catch(() => '')).trim();
  const server = await createServer({
    config,
    configuration,
    generatedToken: firstToken === '' ? undefined : { id: 'owner', secret: firstToken },
    home: paths,
    installKey,
    secrets: vault,
    version: '0.0.0-test',
    configFiles: [],
    env: options.env ?? {},
    log: silentLog,
    logger: options.logger ?? { setLevel: () => true, modules: () => [], reset() {}, recent: { newest: () => [], listen: () => () => {} } },
    redactor,
    supervised: false,
    checkConfig: async () => {},
    restart: () => {},
    overrides: {
      ...(options.clock && { clock: options.clock }),
      ...(options.db && { db: options.db }),
      // It is that of one engine; a test that names the other one runs it from the sources.
      ...(bundledStorageWorker !== undefined &&
        config.storage.driver === engine &&
        (engine === 'sqlite'
          ? { startStorageThread: takeStorageThread(pathToFileURL(bundledStorageWorker)) }
          : { storageWorker: pathToFileURL(bundledStorageWorker) })),
      ...(options.freeSpace && { freeSpace: options.freeSpace }),
      ...(options.tools && { tools: options.tools }),
      ...(options.egress && { egress: options.egress }),
      ...(options.archives && { archives: options.archives }),
      ...(options.mcpOffer && { mcpOffer: options.mcpOffer }),
      probe: options.probe ?? null,
      load: { loopDelayMs: () => 0, overload: () => undefined, [Symbol.dispose]() {} },
      badResults: 'throw',
    },
  });
  const misfits: string[] = [];
  const check = ({ kind, payload }: { readonly kind: EventKind; readonly payload: unknown }): void => {
    const checked = events[kind].payload.safeParse(payload);
    if (!checked.success) misfits.push(`${kind}: ${checked.error.message}`);
  };
  // A listener for the stream of answers, or for what is made on request alone, changes every turn: tests without one see turns without.
  const kinds = Object.keys(events) as EventKind[];
  server.bus.listen(
    kinds.filter((kind) => kind !== 'message:streaming' && events[kind].onRequest !== true),
    check,
  );
  const url = server.address;
  if (url === null) throw new Error('the test server does not listen');
  const client = createClient({ url, token });
  return {
    url,
    token,
    client,
    provider,
    homeDir,
    server,
    configuration,
    bus: server.bus,
    async as(scopes, limits = {}) {
      const made = await client.call('tokens.create', { scopes: [...scopes], ...limits });
      return { ...createClient({ url, token: made.secret }), token: made.secret, tokenId: made.id };
    },
    socket: (other = token) => createSocket({ url, token: other }),
    heard<K extends EventKind>(kind: K) {
      const payloads: EventPayload<K>[] = [];
      // The bus delivers what was emitted under this kind.
      server.bus.listen([kind], (event) => {
        if (kind === 'message:streaming') check(event);
        payloads.push(event.payload as EventPayload<K>);
      });
      return payloads;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await provider.close();
      // A home that is kept keeps its database, which ends with the test run.
      if (options.homeDir === undefined) {
        await database?.[Symbol.asyncDispose]();
        await rm(homeDir, { recursive: true, force: true });
      }
      if (misfits.length > 0) throw new Error(`Events that do not fit their declaration:\n${misfits.join('\n')}`);
    },
  };
}

async function openDatabase(homeDir: string): Promise<AsyncDisposable & { readonly url: string }> {
  const { openDatabaseOf } = await import('@gatehouse/server/test-database');
  return openDatabaseOf(homeDir);
}
