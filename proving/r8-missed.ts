import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { bellConfig, bellsOf, runsOf, startClocked } from './lib/bells.ts';
import { type Daemon, pause } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/** R8: each time of a job that passes while the daemon is down has a row: one run for the last of them, and one with the reason for each other. */
export interface R8Report {
  readonly jobs: number;
  /** Times that passed. */
  readonly missed: number;
  readonly wrong: readonly string[];
}

const minuteMs = 60_000;
const stoppedMs = 3 * 60 * minuteMs;

export async function proveMissed(options: { readonly jobs: number; readonly seed: number; readonly broken?: string }): Promise<R8Report> {
  const random = randomFrom(options.seed);
  const home = await makeHome();
  const port = await freePort();
  const provider = await startFakeProvider({});
  await writeConfig(home, bellConfig(provider.url, options.jobs));
  const wrong: string[] = [];
  let missed = 0;
  let daemon: Daemon | undefined;
  try {
    daemon = await startClocked({ home, port });
    const bell = await bellsOf(daemon);
    // Away from the moments of the kill and of the start, at which a time may fall on either side.
    const anchorMs = Math.ceil(Date.now() / minuteMs) * minuteMs + 2 * minuteMs;
    const jobs = Array.from({ length: options.jobs }, (_, index) => ({ name: `bell ${index}`, everyMs: (7 + random.int(84)) * minuteMs }));
    for (const { name, everyMs } of jobs) await rpcCall(daemon, 'cron.add', bell(name, { kind: 'every', everyMs, anchorMs }));
    await daemon.kill();
    daemon = await startClocked({ home, port, aheadMs: stoppedMs, speed: 60, broken: options.broken });
    const wokenMs = Date.now() + stoppedMs;
    for (const { name, everyMs } of jobs) {
      const expected: number[] = [];
      for (let atMs = anchorMs; atMs <= wokenMs - minuteMs; atMs += everyMs) expected.push(atMs);
      missed += expected.length;
      const last = expected.at(-1);
      const until = Date.now() + 30_000;
      let runs = await runsOf(daemon, name);
      while (Date.now() < until && !runs.some(({ scheduledForMs, status }) => scheduledForMs >= (last ?? 0) && status === 'completed')) {
        await pause(50);
        runs = await runsOf(daemon, name);
      }
      const rows = new Map<number, string[]>();
      for (const run of runs) rows.set(run.scheduledForMs, [...(rows.get(run.scheduledForMs) ?? []), run.status]);
      for (const atMs of expected) {
        const found = rows.get(atMs) ?? [];
        if (found.length !== 1) wrong.push(`${name} every ${everyMs / minuteMs} min: ${new Date(atMs).toISOString()} has ${found.length} rows`);
      }
      // The clock ran on while the earlier ones were checked, so that a later time may be the last one.
      const ran = runs.filter(({ trigger, status }) => trigger === 'catchup' && status === 'completed');
      if (ran.length !== 1 || (ran[0]?.scheduledForMs ?? 0) < (last ?? 0))
        wrong.push(`${name}: ${ran.length} runs caught up with, not the last one alone`);
    }
    return { jobs: jobs.length, missed, wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}
