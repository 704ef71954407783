import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { clientCpu, get, serverCpu, start, type Running } from './proc.ts';

const root = join(import.meta.dirname, '..', '..');
export const productEntry = join(root, 'dist', 'main.js');

/** A target of load. Without `pid` (the fake provider asked directly) CPU is not measured. */
export interface Target {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the target's name of a model of the fake provider. */
  model(name: string): string;
  readonly pid?: number;
}

/** A server that can be restarted. */
export interface Startable {
  readonly name: string;
  start(how?: { readonly probe?: boolean }): Promise<Running>;
}

/** A server that can be restarted and called. */
export interface Subject extends Startable {
  target(running: Running): Target;
}

export interface Upstream {
  readonly url: string;
  readonly target: Target;
  /** Model requests and others that arrived so far. */
  served(): Promise<number>;
  stop(): Promise<void>;
}

export async function startUpstream(): Promise<Upstream> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const running = await start({
    args: [join(root, 'packages/testkit/src/fake-provider.ts'), '--port', String(port)],
    healthUrl: `${url}/health`,
    cpu: clientCpu,
  });
  return {
    url,
    target: { name: 'direct', url, headers: {}, model: (name) => name },
    served: async () => Number(JSON.parse((await get(`${url}/health`)).body).served),
    stop: running.stop,
  };
}

export interface ReferenceOptions {
  readonly name: string;
  readonly file: 'raw-http.ts' | 'bare-ws.ts' | 'bare-events.ts' | 'http-only.ts';
  readonly upstreamUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments of Node before the file; a broken build is made by `--import`. */
  readonly nodeArgs?: readonly string[];
}

export async function reference(options: ReferenceOptions): Promise<Subject> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { PORT: String(port), ...(options.upstreamUrl !== undefined && { UPSTREAM: options.upstreamUrl }), ...options.env };
  const args = [...(options.nodeArgs ?? []), join(import.meta.dirname, '..', 'reference', options.file)];
  return {
    name: options.name,
    start: ({ probe = false } = {}) => start({ args, env, healthUrl: `${url}/health`, cpu: serverCpu, probe }),
    target: ({ pid }) => ({ name: options.name, url, headers: { authorization: 'Bearer bench-token' }, model: (name) => name, pid }),
  };
}

export async function startReference(options: ReferenceOptions): Promise<{ readonly target: Target; readonly running: Running }> {
  const server = await reference(options);
  const running = await server.start();
  return { running, target: server.target(running) };
}

export interface Product extends Subject {
  /** The path of its database, which is filled while it is stopped. */
  readonly dataDir: string;
  dispose(): void;
}

export interface ProductOptions {
  /** Further agents, by id. */
  readonly agents?: Readonly<Record<string, object>>;
  /** Further sections of its configuration, such as `mcp`. */
  readonly sections?: Readonly<Record<string, object>>;
  /** Further models of the fake provider. */
  readonly models?: readonly string[];
  /** Further providers, by id. */
  readonly providers?: Readonly<Record<string, object>>;
  /** Files of its home folder, by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Tokens of the window of the models; that of the product's table otherwise. */
  readonly contextWindow?: number;
  /** Arguments of Node before the file; a broken build is made by `--import`. */
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns the built daemon with a new home, the fake provider and one agent; undefined when it is not built. */
export async function product(upstreamUrl: string, options: ProductOptions = {}): Promise<Product | undefined> {
  if (!existsSync(productEntry)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'bench-product-'));
  const home = join(folder, 'home');
  mkdirSync(home, { mode: 0o700 });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const secret = randomBytes(24).toString('hex');
  // No limit may answer instead of the turn.
  const plenty = 1_000_000_000;
  const cost = { input: 0.5, output: 1.5 };
  const config = {
    gateway: {
      port,
      tokens: [{ id: 'bench', secret, scopes: ['*'] }],
      rateLimit: { maxRequests: plenty },
      wsMessageRateLimit: { maxMessages: plenty },
    },
    providers: {
      mock: {
        type: 'openai-compatible',
        baseUrl: `${upstreamUrl}/v1`,
        apiKey: 'sk-mock',
        models: ['mock-fast', 'mock-p10', ...(options.models ?? [])].map((id) => ({
          id,
          cost,
          ...(options.contextWindow !== undefined && { contextWindow: options.contextWindow, maxTokens: 256 }),
        })),
      },
      ...options.providers,
    },
    models: { discover: false },
    agents: { default: { model: 'mock/mock-fast', maxConcurrentRuns: 1000 }, ...options.agents },
    ...options.sections,
  };
  for (const [path, text] of Object.entries(options.files ?? {})) {
    mkdirSync(dirname(join(home, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, path), text);
  }
  // JSON is YAML.
  writeFileSync(join(home, 'config.yaml'), JSON.stringify(config, undefined, 2), { mode: 0o600 });
  const headers = { authorization: `Bearer ${secret}` };
  return {
    name: 'product',
    start: ({ probe = false } = {}) =>
      start({
        probe,
        args: [...(options.nodeArgs ?? []), productEntry, 'start'],
        env: { GATEHOUSE_HOME: home, ...options.env },
        healthUrl: `${url}/health`,
        cpu: serverCpu,
        timeoutMs: 30_000,
        log: join(folder, 'log.ndjson'),
      }),
    target: (running) => ({ name: 'product', url, headers, model: (name) => `mock/${name}`, pid: running.pid }),
    dataDir: join(home, 'data'),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  };
}
