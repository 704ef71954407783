import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@gatehouse/client';
import { Client } from 'pg';
import { createTestDatabase } from '../../../kernel/db/postgres/testing/test-database.ts';
import { migrations } from '../../../transactions/registry.ts';

/** The bundle in `npm test`, which starts in a fifth of the time. */
const main = process.env['GATEHOUSE_TEST_MAIN'] ?? join(import.meta.dirname, '../../../main.ts');
const token = `gh_${'Tk4'.repeat(20)}`;

export interface TestNode {
  readonly url: string;
  readonly home: string;
  readonly child: ChildProcess;
  readonly client: ReturnType<typeof createClient>;
  /** Both streams. */
  output(): string;
  readonly exit: Promise<number | null>;
  /** Status code and body of `/health?ready`; 0 while nothing listens. */
  ready(): Promise<readonly [number, unknown]>;
}

export interface SharedNodes extends AsyncDisposable {
  readonly folder: string;
  /** A daemon with its own home, started again under the same name with the same one. */
  start(
    name: string,
    options?: { readonly env?: Readonly<Record<string, string>>; readonly program?: string; readonly config?: Readonly<Record<string, unknown>> },
  ): Promise<TestNode>;
  /** Resolves with the one that is active. */
  active(nodes: readonly TestNode[]): Promise<TestNode>;
  /** Rows of a question to the database. */
  rows(text: string): Promise<readonly Record<string, unknown>[]>;
}

/** Daemons of one database, each with a separate home, and one shared folder. */
export async function openSharedNodes(config: { readonly providerUrl: string; readonly [section: string]: unknown }): Promise<SharedNodes> {
  const { providerUrl, ...sections } = config;
  const database = await createTestDatabase(migrations);
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-nodes-'));
  const sharedPath = join(folder, 'shared');
  mkdirSync(sharedPath);
  const ports = new Map<string, number>();
  const running = new Set<ChildProcess>();

  async function start(name: string, { env = {}, program = main, config: own = {} }: Parameters<SharedNodes['start']>[1] = {}): Promise<TestNode> {
    const home = join(folder, name);
    const port = ports.get(name) ?? (await freePort());
    ports.set(name, port);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const settings = {
      gateway: { port, drainTimeoutMs: 5_000 },
      storage: { driver: 'postgres', url: database.url, poolSize: 4, sharedPath },
      providers: { mock: { type: 'openai-compatible', baseUrl: providerUrl, apiKey: 'key', models: [{ id: 'mock-fast' }] } },
      agents: { default: { model: 'mock/mock-fast' } },
      ...sections,
      ...own,
    };
    writeFileSync(join(home, 'config.yaml'), JSON.stringify(settings), { mode: 0o600 });
    const child = spawn(process.execPath, [program, '--home', home], {
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: home,
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
        GATEHOUSE_TOKEN: token,
        GATEHOUSE_MASTER_KEY: '07'.repeat(32),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const url = `http://127.0.0.1:${port}`;
    return {
      url,
      home,
      child,
      client: createClient({ url, token }),
      output: () => output,
      exit: once(child, 'close').then(([code]: unknown[]) => (typeof code === 'number' ? code : null)),
      async ready() {
        try {
          const answer = await fetch(`${url}/health?ready`);
          return [answer.status, await answer.json()];
        } catch {
          return [0, undefined];
        }
      },
    };
  }

  return {
    folder,
    start,
    async active(nodes) {
      for (;;) {
        for (const node of nodes) {
          if (node.child.exitCode !== null) throw new Error(`A node ended: ${node.output()}`);
          if ((await node.ready())[0] === 200) return node;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    rows: async (text) => (await client.query<Record<string, unknown>>(text)).rows,
    async [Symbol.asyncDispose]() {
      for (const child of running) {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      }
      await client.end();
      await database[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A port that the daemon keeps over its restarts. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
