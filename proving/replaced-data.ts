import { cp, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { http } from './lib/http.ts';
import { type Kind, lookForAcked, startWriters } from './lib/kept-writes.ts';
import { askWith, nonceOf, proofConfig, startReviewingProvider } from './lib/provider.ts';
import { RpcFailure, rpcCall } from './lib/rpc.ts';

/**
 * Files of `data/` are moved or replaced under a running daemon: nothing is acknowledged that a restart would not find,
 * accepted work waits and runs once, `/health` and the next start say what happened.
 */
export interface ReplacedDataReport {
  readonly acked: number;
  readonly refused: number;
  readonly wrong: readonly string[];
}

const Health = z.looseObject({ status: z.string() });
const jobMs = 2_000;

export async function proveReplacedData(options: { readonly jobs: boolean; readonly broken?: string }): Promise<ReplacedDataReport> {
  const provider = await startReviewingProvider({ journal: 1_000 });
  const home = await makeHome();
  const data = join(home, 'data');
  const wrong: string[] = [];
  const acked = new Map<string, Kind>();
  const daemons: Daemon[] = [];
  let refused = 0;
  const start = async (): Promise<Daemon> => {
    const daemon = await startDaemon({ home, port: await freePort(), ...(options.broken !== undefined && { broken: options.broken }) });
    daemons.push(daemon);
    return daemon;
  };
  const write = async (daemon: Daemon, mark: string, isTaken: boolean): Promise<void> => {
    const writers = startWriters(daemon, (asked) => asked < 2, { mark });
    await writers.done;
    refused += writers.refused;
    for (const [nonce, kind] of writers.acked) acked.set(nonce, kind);
    wrong.push(...writers.broken);
    const taken = writers.acked.size;
    if (isTaken ? taken < 8 : taken > 0) wrong.push(`${mark}: ${taken} of 8 writes were acknowledged`);
  };
  const asked = (nonce: string): number => provider.requests.filter(({ body }) => JSON.stringify(body).includes(nonce)).length;
  const addJob = (daemon: Daemon, nonce: string) =>
    rpcCall(daemon, 'cron.add', {
      name: nonce,
      schedule: { kind: 'in', seconds: jobMs / 1000 },
      payload: { kind: 'agent_turn', message: askWith(nonce) },
    });
  const [held, twice] = [nonceOf(['held']), nonceOf(['twice'])];
  try {
    await writeConfig(home, proofConfig(provider.url));
    const first = await start();
    await write(first, 'before', true);
    if (options.jobs) await addJob(first, held);

    await rename(data, `${data}.away`);
    await write(first, 'away', false);
    await expectReason(first, wrong);
    await expectHealth(first, 'degraded', wrong);
    if (options.jobs) {
      await pause(jobMs + 1_000);
      if (asked(held) > 0) wrong.push('a job ran while its database was away');
    }
    await rename(`${data}.away`, data);
    await expectHealth(first, 'ok', wrong);
    await write(first, 'back', true);
    if (options.jobs) {
      await eventually(() => asked(held) > 0);
      await addJob(first, twice);
    }

    // Simulates a restored backup while the daemon still runs.
    await rename(data, `${data}.old`);
    // The daemon may create a file while it is copied.
    const copy = () => cp(`${data}.old`, data, { recursive: true });
    await copy().catch(copy);
    await write(first, 'copy', false);
    await first.kill();
    if (options.jobs) {
      await ageBoots(home);
      const second = await start();
      if (!(await eventually(() => second.stdout().includes('The last run ended after a fault'))))
        wrong.push('the next start says nothing of what happened');
      await write(second, 'second', true);
      await eventually(() => asked(twice) > 0);
      await pause(1_000);
      for (const nonce of [held, twice]) if (asked(nonce) !== 1) wrong.push(`a job ran ${asked(nonce)} times`);
    }
    await Promise.all(daemons.map((daemon) => daemon.kill()));
    wrong.push(...lookForAcked(home, acked));
    return { acked: acked.size, refused, wrong };
  } finally {
    await Promise.all(daemons.map((daemon) => daemon.kill()));
    await provider.close();
    await removeHome(home);
  }
}

async function expectReason(daemon: Daemon, wrong: string[]): Promise<void> {
  const said = await rpcCall(daemon, 'tokens.create', { scopes: ['api'] }).then(
    () => 'nothing',
    (error: unknown) => (error instanceof RpcFailure ? error.message : `no answer of the protocol: ${String(error)}`),
  );
  if (!/changed under the running daemon .*gatehouse\.db/.test(said)) wrong.push(`a write said: ${said}`);
}

async function expectHealth(daemon: Daemon, wanted: string, wrong: string[]): Promise<void> {
  const health = async () => Health.parse(JSON.parse((await http({ port: daemon.port, path: '/health' })).text)).status;
  if (!(await eventually(async () => (await health()) === wanted))) wrong.push(`/health does not become ${wanted}`);
}

async function eventually(holds: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + 10_000; performance.now() < until; await pause(50)) if (await holds()) return true;
  return false;
}
