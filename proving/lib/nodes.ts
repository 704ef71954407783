import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { Client } from 'pg';
import { type Daemon, logOf, pause, spawnDaemon } from './daemon.ts';
import { http } from './http.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './home.ts';
import { openPostgresDatabase } from './shared-postgres.ts';

/** A daemon that shares its database with others; it may be a standby. */
export type Node = Omit<Daemon, 'readyMs'>;

/** Length of the lease, and the time after its end within which the standby must be at work. */
export const takeOverMs = 15_000;
const startMs = 60_000;

/** Daemons on one PostgreSQL, each with its home, and one folder that they share. */
export interface Nodes extends AsyncDisposable {
  readonly shared: string;
  /** Starts the first or second daemon. */
  start(which: 0 | 1): Promise<Node>;
  /** Waits until one of them is ready, at most `withinMs`; returns the milliseconds. @throws with the logs */
  ready(node: Node, withinMs?: number): Promise<number>;
  standsBy(node: Node): Promise<void>;
  query<Row>(text: string): Promise<readonly Row[]>;
  /** Ends the lease of the active daemon in the database, as if it had been silent for that long. */
  lapse(): Promise<void>;
}

export async function openNodes(config: object, options: { readonly broken?: string | readonly string[] | undefined } = {}): Promise<Nodes> {
  const opened = new AsyncDisposableStack();
  const homes = await Promise.all([makeHome(), makeHome(), makeHome()]);
  for (const home of homes) opened.defer(() => removeHome(home));
  const [shared] = homes;
  const { url } = opened.use(await openPostgresDatabase(shared));
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  opened.defer(() => client.end());
  const slots = await Promise.all(homes.slice(1).map(async (home) => ({ home, port: await freePort() })));
  for (const { home } of slots) await writeConfig(home, { ...config, storage: { driver: 'postgres', url, poolSize: 4, sharedPath: shared } });
  const running = new Set<Node>();
  opened.defer(async () => {
    for (const node of running) await node.kill();
  });

  async function statusOf({ port }: Node): Promise<{ readonly status: number; readonly text: string }> {
    return http({ port, path: '/health?ready', timeoutMs: 2_000 }).catch(() => ({ status: 0, text: '' }));
  }

  async function until(
    node: Node,
    what: string,
    withinMs: number,
    is: (found: { readonly status: number; readonly text: string }) => boolean,
  ): Promise<number> {
    const from = performance.now();
    for (;;) {
      if (is(await statusOf(node))) return performance.now() - from;
      if (node.child.exitCode !== null || performance.now() - from > withinMs)
        throw new Error(`the node is not ${what} after ${withinMs} ms\n${logOf(node)}`);
      await pause(20);
    }
  }

  return {
    shared,
    async start(which) {
      const slot = slots[which];
      if (slot === undefined) throw new Error('there are two nodes');
      // Kills are what these proofs are about; three within five minutes would stop the agents.
      await mkdir(join(slot.home, 'data'), { recursive: true, mode: 0o700 });
      await ageBoots(slot.home).catch(() => undefined);
      const { broken } = options;
      const node = spawnDaemon({ ...slot, env: { GATEHOUSE_MASTER_KEY: '07'.repeat(32) }, ...(broken !== undefined && { broken }) });
      running.add(node);
      void node.exited.then(() => running.delete(node));
      return node;
    },
    ready: (node, withinMs = startMs) => until(node, 'ready', withinMs, ({ status }) => status === 200),
    async standsBy(node) {
      await until(node, 'a standby', startMs, ({ status, text }) => status === 503 && text.includes('"standby"'));
    },
    query: async <Row>(text: string) => (await client.query(text)).rows as readonly Row[],
    async lapse() {
      // A renewal may be under way.
      await client.query(`UPDATE node SET lease_until_ms = 0 FROM active_node WHERE node.boot_id = active_node.boot_id`);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
