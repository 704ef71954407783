import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, pause, residentMbOf, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig } from './lib/provider.ts';
import { randomFrom } from './lib/random.ts';
import { percentile } from './lib/raw.ts';

/** R19: at ten times its capacity, the daemon accepts what it can do in time, refuses the rest immediately, and recovers when the load is over. */
export interface R19Report {
  /** Turns per second: slots of the agent divided by the duration of a turn; and the requested rate. */
  readonly capacity: number;
  readonly offered: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Refusals that name no time to retry. */
  readonly withoutRetryAfter: number;
  /** Time to an answer: alone, and of accepted ones under load, including their wait. Under load `p99Ms` is that of the median of its seconds: a second in which the machine was busy is not the daemon's fault. */
  readonly alone: Times;
  readonly loaded: Times;
  readonly refused: Times;
  readonly health: Times & { readonly bad: readonly string[] };
  /**
   * Time from the end of the load until the first of five consecutive turns that came in the time that they take alone; undefined: not
   * within three seconds. When the first check says too late, the median of three loads.
   */
  readonly recoveryMs: number | undefined;
  /** Growth of the process at its peak, in MiB. */
  readonly grownMb: number;
}

interface Times {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const places = 64;
/** How long the provider takes: 1 to 2 s, as models do. */
const fastestMs = 1_000;
const spreadMs = 1_000;
const capacity = Math.round((places * 1_000) / (fastestMs + spreadMs / 2));
const clients = ['one', 'two', 'three', 'four'];
/** Longer than any accepted turn may take. */
const patienceMs = 6_000;

export async function proveOverload(options: {
  readonly forMs: number;
  readonly seed: number;
  /** Loads whose end is checked when the first check says too late; 3 by default. */
  readonly looks?: number;
  readonly broken?: string;
}): Promise<R19Report> {
  const random = randomFrom(options.seed);
  const home = await makeHome();
  const port = await freePort();
  const provider = await startFakeProvider({ journal: 0, answer: () => ({ text: 'done', delayMs: fastestMs + random.int(spreadMs) }) });
  let daemon: Daemon | undefined;
  try {
    const tokens = clients.map((id) => ({ id, secret: secretOf(id), scopes: ['rpc'] }));
    const agents = { default: { model: 'local/test-model', maxConcurrentRuns: places } };
    await writeConfig(home, proofConfig(provider.url, { gateway: { tokens }, agents }));
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const agent = new Agent({ keepAlive: true });
    // Half of the capacity, so that none waits.
    const alone = await ask({ port, agent, perSecond: capacity / 2, forMs: 2_000 });
    const health = watchHealth(daemon);
    const loading = ask({ port, agent, perSecond: capacity * 10, forMs: options.forMs });
    await pause(options.forMs);
    const recoveries = [await recover(port, agent)];
    while (isLate(recoveries[0]) && recoveries.length < (options.looks ?? 3)) {
      const again = ask({ port, agent, perSecond: capacity * 10, forMs: 3_000 });
      await pause(3_000);
      recoveries.push(await recover(port, agent));
      await again;
    }
    const recoveryMs = recoveries.toSorted((a, b) => (a ?? Infinity) - (b ?? Infinity))[recoveries.length >> 1];
    const asked = await health.stop();
    const loaded = await loading;
    agent.destroy();
    return {
      capacity,
      offered: capacity * 10,
      statuses: loaded.statuses,
      withoutRetryAfter: loaded.withoutRetryAfter,
      alone: timesOf(alone.answered.map(({ ms }) => ms)),
      loaded: { ...timesOf(loaded.answered.map(({ ms }) => ms)), p99Ms: middleSecond(loaded.answered) },
      refused: timesOf(loaded.refused.map(({ ms }) => ms)),
      health: { ...timesOf(asked.times), bad: asked.bad },
      recoveryMs,
      grownMb: Math.round(asked.mostMb - asked.firstMb),
    };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

const secretOf = (id: string): string => `token-of-client-${id}-0123456789abcdefghijkl`;

/** Time of the request, from the start of the load, and how long it took. */
interface Lap {
  readonly atMs: number;
  readonly ms: number;
}

/** 99th percentile of each second of a load, the median of them. */
function middleSecond(laps: readonly Lap[]): number {
  const seconds = Map.groupBy(laps, ({ atMs }) => Math.floor(atMs / 1_000)).values();
  return Math.round(
    percentile(
      [...seconds].map((second) =>
        percentile(
          second.map(({ ms }) => ms),
          0.99,
        ),
      ),
      0.5,
    ),
  );
}

const recoversWithinMs = 2_000;
const isLate = (recoveryMs: number | undefined): boolean => recoveryMs === undefined || recoveryMs > recoversWithinMs;

interface Asked {
  readonly answered: Lap[];
  readonly refused: Lap[];
  readonly statuses: Record<string, number>;
  withoutRetryAfter: number;
}

/** Sends completions at a fixed rate, of all clients in turn, whether they are answered or not; waits for the last answer. */
async function ask(load: { readonly port: number; readonly agent: Agent; readonly perSecond: number; readonly forMs: number }): Promise<Asked> {
  const asked: Asked = { answered: [], refused: [], statuses: {}, withoutRetryAfter: 0 };
  const running: Promise<void>[] = [];
  const begun = performance.now();
  const one = async (n: number): Promise<void> => {
    const from = performance.now();
    const { status, retryAfter } = await complete(load, n);
    const ms = performance.now() - from;
    asked.statuses[status] = (asked.statuses[status] ?? 0) + 1;
    (status === '200' ? asked.answered : asked.refused).push({ atMs: from - begun, ms });
    if (status !== '200' && retryAfter === undefined) asked.withoutRetryAfter += 1;
  };
  for (let ms = 0; ms < load.forMs; ms = performance.now() - begun) {
    while (running.length < (ms / 1_000) * load.perSecond) running.push(one(running.length));
    await pause(5);
  }
  await Promise.all(running);
  return asked;
}

/** Runs one turn in a new conversation, through the routes of chat in turn; a stream counts when it is whole. */
async function complete(
  { port, agent }: { readonly port: number; readonly agent: Agent },
  n: number,
): Promise<{ readonly status: string; readonly retryAfter: string | undefined }> {
  const completion = { model: 'default', messages: [{ role: 'user', content: 'Hello' }] };
  const routes = [
    { path: '/v1/chat/completions', body: completion },
    { path: '/v1/chat/completions', body: { ...completion, stream: true } },
    { path: '/api/chat', body: { message: 'Hello', sessionKey: `user-${crypto.randomUUID()}:load` } },
  ] as const;
  const route = routes[n % routes.length] ?? routes[0];
  try {
    const { status, headers, text } = await http({
      port,
      agent,
      ...route,
      headers: bearer(secretOf(clients[n % clients.length] ?? '')),
      timeoutMs: patienceMs,
    });
    return { status: status === 200 && !text.includes('done') ? 'no text' : String(status), retryAfter: headers['retry-after'] };
  } catch (error) {
    return { status: error instanceof Error ? error.message : 'failed', retryAfter: undefined };
  }
}

/** Sends ten requests a second for three seconds; returns when the first of five consecutive ones was sent that took as long as alone. */
async function recover(port: number, agent: Agent): Promise<number | undefined> {
  const begun = performance.now();
  const tries: Promise<{ readonly atMs: number; readonly well: boolean }>[] = [];
  const one = async (n: number): Promise<{ readonly atMs: number; readonly well: boolean }> => {
    const from = performance.now();
    const { status } = await complete({ port, agent }, n);
    return { atMs: from - begun, well: status === '200' && performance.now() - from < fastestMs + spreadMs + 200 };
  };
  while (performance.now() - begun < 3_000) {
    tries.push(one(tries.length));
    await pause(100);
  }
  const tried = await Promise.all(tries);
  const first = tried.findIndex((_, index) => index + 5 <= tried.length && tried.slice(index, index + 5).every(({ well }) => well));
  const found = tried[first];
  return found === undefined ? undefined : Math.round(found.atMs);
}

/** Probes twenty times a second, on new connections, as an orchestrator does, and reads the memory of the process. */
function watchHealth(daemon: Daemon) {
  const residentMb: number[] = [];
  const times: number[] = [];
  const bad: string[] = [];
  const running: Promise<void>[] = [];
  const probe = async (): Promise<void> => {
    const from = performance.now();
    try {
      const { status } = await http({ port: daemon.port, path: '/health', timeoutMs: 5_000 });
      if (status !== 200) bad.push(`HTTP ${status}`);
    } catch (error) {
      bad.push(String(error));
    }
    times.push(performance.now() - from);
    residentMb.push(await residentMbOf(daemon.pid));
  };
  const timer = setInterval(() => void running.push(probe()), 50);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(running);
      return { times, bad, firstMb: residentMb[0] ?? 0, mostMb: Math.max(0, ...residentMb) };
    },
  };
}

function timesOf(times: readonly number[]): Times {
  return { count: times.length, p50Ms: Math.round(percentile(times, 0.5)), p99Ms: Math.round(percentile(times, 0.99)) };
}

/** Returns the differences of the report from the promise; nothing when it holds. */
export function faultsOf({ statuses, withoutRetryAfter, alone, loaded, health, recoveryMs, grownMb }: R19Report): string[] {
  const faults: string[] = [];
  const odd = Object.keys(statuses).filter((status) => !['200', '429', '503'].includes(status));
  if (odd.length > 0) faults.push(`answered with ${odd.join(', ')}`);
  if (withoutRetryAfter > 0) faults.push(`${withoutRetryAfter} refusals without Retry-After`);
  if (loaded.p99Ms > 2 * alone.p99Ms) faults.push(`accepted ones took ${loaded.p99Ms} ms, alone ${alone.p99Ms} ms`);
  if (health.bad.length > 0) faults.push(`/health: ${health.bad.slice(0, 3).join(', ')}`);
  if (isLate(recoveryMs)) faults.push(`well again after ${recoveryMs ?? 'more than 3000'} ms`);
  if (grownMb > 128) faults.push(`the process grew by ${grownMb} MiB`);
  return faults;
}
