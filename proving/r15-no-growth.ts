import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, pause, residentMbOf, startDaemon } from './lib/daemon.ts';
import { openEventReader } from './lib/event-reader.ts';
import { type Holdings, holdingsHook, holdingsOf } from './lib/holdings.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { openSocket, rpcCall } from './lib/rpc.ts';

/** R15: finished requests and streams leave nothing behind: no memory, no open handle, no listener. */
export interface R15Report {
  readonly requests: number;
  readonly streams: number;
  readonly before: Holdings;
  readonly after: Holdings;
  readonly failed: readonly string[];
}

export interface R15Options {
  readonly requests: number;
  readonly streams: number;
  /** Share of the load that runs first, so that caches are full. */
  readonly warm: number;
  /** How long to wait for memory to be freed. */
  readonly settleMs: number;
  readonly broken?: string;
}

export async function proveNoGrowth(options: R15Options): Promise<R15Report> {
  const { requests, streams, warm, settleMs } = options;
  const provider = await startEchoProvider();
  const home = await makeHome();
  let daemon: Daemon | undefined;
  const failed: string[] = [];
  try {
    await writeConfig(home, proofConfig(provider.url));
    const port = await freePort();
    const built = options.broken === undefined ? {} : { broken: options.broken };
    daemon = await startDaemon({ home, port, hooks: [holdingsHook], heapMb: 512, readyTimeoutMs: 60_000, ...built });
    const work = async (share: number): Promise<void> => {
      if (daemon === undefined) return;
      await Promise.all([ask(daemon, requests * share, failed), open(daemon, streams * share, failed)]);
    };
    await crowd(daemon);
    await work(warm);
    const before = await settled(daemon, settleMs);
    await work(1);
    const after = await settled(daemon, settleMs);
    return { requests, streams, before, after, failed };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

/**
 * Measures what a daemon holds after `settleMs`. V8 keeps the pages that a collection freed for 8 s more, and restarts that time with each
 * collection: so memory is read from outside, and the minimum counts.
 */
async function settled(daemon: Daemon, settleMs: number): Promise<Holdings> {
  const first = await holdingsOf(daemon);
  let { rssMb } = first;
  for (const until = performance.now() + settleMs; performance.now() < until;) {
    await pause(settleMs / 50);
    rssMb = Math.min(rssMb, await residentMbOf(daemon.pid));
  }
  const last = await holdingsOf(daemon);
  const kinds = Object.keys(last.handles).map((kind) => [kind, Math.min(first.handles[kind] ?? 0, last.handles[kind] ?? 0)] as const);
  return { ...last, rssMb, handles: Object.fromEntries(kinds) };
}

/** Returns what is wrong with the holdings: fewer closures than streams belong to the caches. */
export function growthOf({ before, after, streams, failed }: R15Report): string[] {
  const grown = after.closures - before.closures;
  return [
    ...failed.slice(0, 5),
    ...(grown > streams / 2 ? [`${grown} functions more are held`] : []),
    ...Object.entries(after.handles).flatMap(([kind, count]) => {
      const more = count - (before.handles[kind] ?? 0);
      return more > 0 ? [`${more} more of ${kind} are open`] : [];
    }),
  ];
}

const width = 8;

/** Sends short requests over kept connections, good ones and refused ones. */
async function ask(daemon: Daemon, count: number, failed: string[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: width });
  const { port, token } = daemon;
  const kinds = [
    async () => void (await rpcCall({ port, token, agent }, 'system.ping', {})),
    async () => (await http({ port, path: '/health', agent })).status === 200 || failed.push('/health'),
    async () => (await http({ port, path: '/v1/models', agent, headers: bearer(token) })).status === 200 || failed.push('/v1/models'),
    async () => (await http({ port, path: '/no/such/path', agent, headers: bearer(token) })).status === 404 || failed.push('no 404'),
  ];
  await each(count, width, async (n) => void (await kinds[n % kinds.length]?.()), failed);
  agent.destroy();
}

/** Sends many queries at once, when the daemon has run for long enough to start its reading thread. */
async function crowd({ port, token }: Daemon): Promise<void> {
  await pause(1_500);
  for (let burst = 0; burst < 10; burst += 1) {
    await Promise.all(Array.from({ length: 64 }, () => rpcCall({ port, token }, 'session.list', {})));
  }
}

/** Opens event streams and sockets, and leaves each as soon as it is open. */
async function open(daemon: Daemon, count: number, failed: string[]): Promise<void> {
  const { port, token } = daemon;
  const visit = async (n: number): Promise<void> => {
    if (n % 2 === 0) {
      const reader = openEventReader({ port, token });
      if (!(await reader.opened).startsWith('HTTP/1.1 200')) failed.push('an event stream was refused');
      reader.close();
      await reader.closed;
      return;
    }
    const socket = await openSocket({ port, token });
    await socket.call('system.ping', {});
    socket.close();
    await socket.closed;
  };
  await each(count, width, visit, failed);
}

async function each(count: number, atOnce: number, one: (n: number) => Promise<void>, failed: string[]): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) await one(n).catch((error: unknown) => void failed.push(String(error)));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
