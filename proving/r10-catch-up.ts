import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { bellConfig, bellsOf, type BellRun, runsOf, startClocked } from './lib/bells.ts';
import { type Daemon, pause } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { rpcCall } from './lib/rpc.ts';

/** R10: jobs that are overdue at a start run one by one, a few at once when they take long, and none is left out. */
export interface R10Report {
  readonly overdue: number;
  /** Shortest time between two of them, in milliseconds of the daemon's clock. */
  readonly closestMs: number;
  /** Most of them within 25 seconds. */
  readonly burst: number;
  /** Most of them that ran at the same time. */
  readonly atOnce: number;
  readonly wrong: readonly string[];
}

const minuteMs = 60_000;
const windowMs = 25_000;
const spacingMs = 5_000;
const mostAtOnce = 5;
/** Duration of a turn in real time: longer than the spacing of six of them in the time of the daemon. */
const turnMs = 1_100;

export async function proveCatchUp(options: { readonly jobs: number; readonly speed: number; readonly broken?: string }): Promise<R10Report> {
  const home = await makeHome();
  const port = await freePort();
  const provider = await startFakeProvider({ journal: 0, answer: () => ({ text: 'Done', delayMs: turnMs }) });
  await writeConfig(home, bellConfig(provider.url, options.jobs));
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    daemon = await startClocked({ home, port });
    const bell = await bellsOf(daemon);
    const anchorMs = Date.now() + 2 * minuteMs;
    const names = Array.from({ length: options.jobs }, (_, index) => `bell ${index}`);
    // Once in the duration of the proof.
    for (const [index, name] of names.entries()) {
      const job = bell(name, { kind: 'every', everyMs: 24 * 60 * minuteMs, anchorMs });
      // Some take long, the first of them one after the other.
      const isLong = index < 10 || index % 10 === 0;
      await rpcCall(daemon, 'cron.add', isLong ? { ...job, payload: { kind: 'agent_turn', message: 'Go' } } : job);
    }
    await daemon.kill();
    daemon = await startClocked({ home, port, aheadMs: 60 * minuteMs, speed: options.speed, broken: options.broken });
    const until = Date.now() + 60_000 + (options.jobs * spacingMs * 3) / options.speed;
    const begun = new Map<string, BellRun>();
    while (begun.size < names.length && Date.now() < until) {
      for (const name of names.filter((one) => !begun.has(one))) {
        const [run] = await runsOf(daemon, name);
        if (run?.terminalAtMs !== undefined) begun.set(name, run);
      }
      await pause(100);
    }
    if (begun.size < names.length) wrong.push(`${names.length - begun.size} of ${names.length} were not caught up with`);
    const runs = [...begun.values()];
    if (runs.some(({ trigger, status }) => trigger !== 'catchup' || status !== 'completed')) wrong.push('one was not caught up with as such');
    const starts = runs.map(({ startedAtMs }) => startedAtMs).toSorted((a, b) => a - b);
    const closestMs = Math.min(...starts.slice(1).map((atMs, index) => atMs - (starts[index] ?? 0)));
    const burst = Math.max(...starts.map((fromMs) => starts.filter((atMs) => atMs >= fromMs && atMs < fromMs + windowMs).length));
    const atOnce = Math.max(
      ...runs.map(({ startedAtMs: atMs }) => runs.filter((run) => run.startedAtMs <= atMs && atMs < (run.terminalAtMs ?? 0)).length),
    );
    if (atOnce > mostAtOnce) wrong.push(`${atOnce} of them ran at once`);
    if (closestMs < spacingMs) wrong.push(`two of them began within ${closestMs} ms`);
    if (burst > windowMs / spacingMs) wrong.push(`${burst} of them began within ${windowMs / 1000} s`);
    return { overdue: names.length, closestMs, burst, atOnce, wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}
