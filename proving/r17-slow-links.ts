import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { openEventReader } from './lib/event-reader.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { runInNamespace } from './lib/namespace.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { inParallel } from './lib/raw.ts';
import { rpcCall } from './lib/rpc.ts';
import { startSlowLinks } from './lib/slow-link.ts';

/** R17: a steady reader is kept, however slow and long the line. */
export interface R17Options {
  readonly readers: number;
  readonly forMs: number;
  readonly broken?: string;
}

export interface R17Report {
  readonly readers: number;
  /** Connections that the server ended. */
  readonly cut: number;
  /** Readers that got a gap, or did not get every answer once and in order. */
  readonly incomplete: number;
  readonly turns: number;
  /** What one reader was sent. */
  readonly bytesEach: number;
  /** Most data that waited for one reader, in time: the age of an event at arrival. */
  readonly behindMs: number;
}

const bytesPerSecond = 64_000;
const rttMs = 300;
/** Events come in bursts of more than a reader accepts in seven seconds, one every ten. */
const burst = { turns: 22, textBytes: 22_000, everyMs: 10_000 };

/** Runs in a network namespace, whose loopback has the packets and buffers of a real line. */
export async function proveSlowLinks(options: R17Options): Promise<R17Report> {
  return (await runInNamespace(import.meta.filename, options)) as R17Report;
}

async function prove(options: R17Options): Promise<R17Report> {
  const home = await makeHome();
  const provider = await startEchoProvider();
  const port = await freePort();
  let daemon: Daemon | undefined;
  try {
    await writeConfig(home, proofConfig(provider.url));
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    await using links = await startSlowLinks({ port, bytesPerSecond, rttMs });
    const { token } = daemon;
    const readers = Array.from({ length: options.readers }, () =>
      openEventReader({ port: links.port, token, query: '?kinds=message:received,message:sent' }),
    );
    await Promise.all(readers.map((reader) => reader.opened));
    const turns = await makeBursts(daemon, options.forMs);
    // Data in flight has the time that the line needs for it.
    const waits = () => readers.some(({ ids, closedAtMs }) => closedAtMs === undefined && ids.length < turns * 2);
    for (const until = performance.now() + 12_000; performance.now() < until && waits();) await pause(100);
    const report = {
      readers: readers.length,
      cut: readers.filter(({ closedAtMs }) => closedAtMs !== undefined).length,
      incomplete: readers.filter(({ ids, gaps }) => gaps.length > 0 || ids.length !== turns * 2 || !isRising(ids)).length,
      turns,
      bytesEach: Math.max(...readers.map(({ socket }) => socket.bytesRead)),
      behindMs: Math.round(Math.max(...readers.flatMap(({ latenciesMs }) => latenciesMs))),
    };
    for (const reader of readers) reader.close();
    return report;
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

/** Returns the number of answered turns. */
async function makeBursts({ port, token }: Daemon, forMs: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const message = 'x'.repeat(burst.textBytes);
  const begun = performance.now();
  let turns = 0;
  for (let nth = 0; nth * burst.everyMs < forMs; nth += 1) {
    await pause(Math.max(0, begun + nth * burst.everyMs - performance.now()));
    await inParallel(Array.from({ length: burst.turns }).keys(), 6, async (n) => {
      await rpcCall({ port, token, agent }, 'agent.execute', { message, sessionKey: `user-${nth}-${n}:line` });
      turns += 1;
    });
  }
  await pause(Math.max(0, begun + forMs - performance.now()));
  agent.destroy();
  return turns;
}

function isRising(ids: readonly number[]): boolean {
  return ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? 0));
}

if (import.meta.main) {
  const options: R17Options = JSON.parse(process.argv[2] ?? '{}');
  console.log(JSON.stringify(await prove(options)));
}
