import { freePort } from '@gatehouse/testkit/free-port';
import type { TestPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { type Daemon, pause, startDaemon } from './daemon.ts';
import { callRpc, outcomeOf, type Query, webhookMapping } from './fault-load.ts';
import { makeHome, removeHome, writeConfig } from './home.ts';
import { proofConfig, startEchoProvider } from './provider.ts';

/** A daemon whose PostgreSQL is made to fail. */
export interface FaultyDatabase extends AsyncDisposable {
  readonly daemon: Daemon;
  /** Milliseconds until a write and a read are answered; undefined when they are not within `withinMs`. */
  recovered(withinMs: number): Promise<number | undefined>;
}

export async function startOn(url: string, broken?: string): Promise<FaultyDatabase> {
  const opened = new AsyncDisposableStack();
  const provider = await startEchoProvider();
  opened.defer(() => provider.close());
  const home = await makeHome();
  opened.defer(() => removeHome(home));
  await writeConfig(home, {
    ...proofConfig(provider.url),
    storage: { driver: 'postgres', url, poolSize: 6 },
    webhooks: { mappings: [webhookMapping] },
  });
  const daemon = await startDaemon({ home, port: await freePort(), readyTimeoutMs: 60_000, ...(broken !== undefined && { broken }) });
  opened.defer(() => daemon.kill());
  let probes = 0;

  /** Repeats a call until it is answered. */
  async function answered(method: string, params: () => object, until: number): Promise<boolean> {
    while (performance.now() < until) {
      const reply = await Promise.race([callRpc(daemon, method, params()), pause(until - performance.now())]);
      if (reply !== undefined && outcomeOf('token', reply, '') === 'acknowledged') return true;
      await pause(20);
    }
    return false;
  }

  return {
    daemon,
    async recovered(withinMs) {
      const from = performance.now();
      const until = from + withinMs;
      const writes = answered('tokens.create', () => ({ id: `probe-${(probes += 1)}`, scopes: ['rpc'] }), until);
      const reads = answered('session.list', () => ({}), until);
      return (await writes) && (await reads) ? performance.now() - from : undefined;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Reads a server on a connection for each question: it may be another server's turn. */
export const queryOf =
  (server: () => TestPostgres): Query =>
  async <Row>(text: string) => {
    const client = new Client({ connectionString: server().url() });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(text)).rows as readonly Row[];
    } finally {
      await client.end();
    }
  };
