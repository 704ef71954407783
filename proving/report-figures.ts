import { Agent } from 'node:http';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { readMain } from './lib/main-thread.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { type FilledHome, fillHome } from './lib/year-home.ts';

interface Figures {
  readonly p50: number;
  readonly p95: number;
  readonly mainMs: number;
}

/** Measures the reports of a daemon with a million model calls and their traces, as a caller over HTTP sees them. */
export interface ReportFigures {
  readonly calls: number;
  readonly traces: number;
  /** Milliseconds of each method: median, the 95th of 100 calls, and the longest processor time of the main thread between two timers meanwhile. */
  readonly times: Readonly<Record<string, Figures>>;
  /** Processes that wanted a processor in the minute before. */
  readonly load: number;
  readonly wrong: readonly string[];
}

const bounds: Readonly<Record<string, number>> = { 'obs.billing.byProvider': 50, 'obs.trace.search by trace': 20, 'obs.trace.search by turn': 20 };
const mainBoundMs = 10;
const settleMs = 5_000;
const watch = join(import.meta.dirname, 'lib/main-cpu-watch.ts');

const Providers = z.object({ providers: z.array(z.object({ callCount: z.number() })) });
const Found = z.object({ rows: z.array(z.object({ id: z.string() })) });

type Asked = readonly [method: string, params: object, check: (result: unknown) => boolean];

/** Turns of a day: the days are all within the time for which traces are kept. */
export async function measureReports({ turnsPerDay, days }: { readonly turnsPerDay: number; readonly days: number }): Promise<ReportFigures> {
  const home = await makeHome();
  const agent = new Agent({ keepAlive: true });
  try {
    const pace = { turns: turnsPerDay, callsPerTurn: 4, events: 0, subAgents: 0 };
    const filled = await fillHome(join(home, 'data'), days, pace, Date.now());
    // Offers no agent anything to do meanwhile.
    await writeConfig(home, { ...proofConfig('http://127.0.0.1:9/v1'), storage: { driver: 'sqlite' } });
    const daemon = await startDaemon({ home, port: await freePort(), readyTimeoutMs: 120_000, hooks: [watch] });
    try {
      const load = loadavg()[0] ?? 0;
      const target = { port: daemon.port, token: daemon.token, agent };
      const wrong: string[] = [];
      const times: Record<string, Figures> = {};
      const all = Object.entries(questions(filled, days));
      // Compiles what is run for the first time; what a start leaves to do is over then.
      for (const [name, askOf] of all) for (let n = 0; n < 20; n += 1) await ask(target, askOf(n), name, wrong);
      await pause(settleMs);
      for (const [name, askOf] of all) {
        await readMain(daemon);
        const taken: number[] = [];
        for (let n = 0; n < 100; n += 1) {
          const sinceMs = performance.now();
          await ask(target, askOf(n), name, wrong);
          taken.push(performance.now() - sinceMs);
        }
        const { longestMs: mainMs } = await readMain(daemon);
        taken.sort((a, b) => a - b);
        times[name] = { p50: taken[50] ?? 0, p95: taken[95] ?? 0, mainMs };
        if (mainMs > mainBoundMs) wrong.push(`${name}: the main thread worked for ${mainMs.toFixed(1)} ms at once`);
      }
      for (const [name, most] of Object.entries(bounds))
        if ((times[name]?.p95 ?? Infinity) > most) wrong.push(`${name}: p95 ${times[name]?.p95.toFixed(1)} ms, at most ${most}`);
      return { calls: filled.calls, traces: days * turnsPerDay, times, load: load / cpus().length, wrong: [...new Set(wrong)] };
    } finally {
      await daemon.kill();
    }
  } finally {
    agent.destroy();
    await removeHome(home);
  }
}

function questions({ calls, newest }: FilledHome, days: number): Readonly<Record<string, (n: number) => Asked>> {
  const at = (n: number) => newest[n % newest.length] ?? { traceId: '', turnId: '', conversationRef: '' };
  const hasRow = (result: unknown, id: string) => Found.parse(result).rows.some((row) => row.id === id);
  const since = `${days + 1}d`;
  return {
    'obs.billing.byProvider': () => [
      'obs.billing.byProvider',
      {},
      (result) => Providers.parse(result).providers.reduce((sum, { callCount }) => sum + callCount, 0) === calls,
    ],
    'obs.trace.search by trace': (n) => ['obs.trace.search', { traceId: at(n).traceId, since }, (result) => hasRow(result, at(n).turnId)],
    'obs.trace.search by turn': (n) => ['obs.trace.search', { where: `id = ${at(n).turnId}`, since }, (result) => hasRow(result, at(n).turnId)],
    'obs.trace.search by conversation': (n) => [
      'obs.trace.search',
      { where: `conversation = ${at(n).conversationRef}`, since, limit: 20 },
      (result) => Found.parse(result).rows.length === 20,
    ],
    'obs.trace.get': (n) => ['obs.trace.get', { ref: at(n).turnId }, (result) => JSON.stringify(result).includes(at(n).turnId)],
  };
}

async function ask(target: Parameters<typeof rpcCall>[0], [method, params, isRight]: Asked, name: string, wrong: string[]): Promise<void> {
  if (!isRight(await rpcCall(target, method, params))) wrong.push(`${name}: a wrong answer`);
}
