import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { percentile } from './lib/raw.ts';
import { rpcCall } from './lib/rpc.ts';

/** R20: the requests of one principal do not delay another one. */
export interface R20Report {
  /** Latency of the other one's turns, alone and then during the flood, by round. */
  readonly rounds: readonly { readonly idle: Times; readonly flooded: Times }[];
  /** Turns of the flood that were answered, and refused. */
  readonly flood: { readonly clients: number; readonly answered: number; readonly refused: number };
}

interface Times {
  readonly turns: number;
  readonly failed: readonly string[];
  readonly ms: readonly number[];
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Turns that an agent runs at once; few, so that there is always a queue. */
const places = 8;
const flooder = 'token-of-the-flooder-0123456789abcdefghij';
const other = 'token-of-the-other-one-0123456789abcdefghij';

export async function proveFairness(options: {
  /** Measured turns, in each of the two phases of a round. */
  readonly turns: number;
  readonly rounds: number;
  /** Turns that the flood keeps queued; more than may wait for the agent. */
  readonly clients: number;
  readonly seed: number;
  readonly broken?: string;
}): Promise<R20Report> {
  const random = randomFrom(options.seed);
  const home = await makeHome();
  const port = await freePort();
  // Answers take 60 to 140 ms, so that slots become free one by one.
  const provider = await startFakeProvider({ journal: 0, answer: () => ({ text: 'done', delayMs: 60 + random.int(80) }) });
  const ended = new AbortController();
  let daemon: Daemon | undefined;
  try {
    const tokens = [
      { id: 'flooder', secret: flooder, scopes: ['rpc'] },
      { id: 'other', secret: other, scopes: ['rpc'] },
    ];
    await writeConfig(
      home,
      proofConfig(provider.url, { gateway: { tokens }, agents: { default: { model: 'local/test-model', maxConcurrentRuns: places } } }),
    );
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    await turnsOf({ port, token: other }, 10, 'warm');
    const flood = { clients: options.clients, answered: 0, refused: 0 };
    const rounds: R20Report['rounds'][number][] = [];
    for (let round = 0; round < options.rounds; round += 1) {
      const idle = await turnsOf({ port, token: other }, options.turns, `idle-${round}`);
      const over = new AbortController();
      const signal = AbortSignal.any([over.signal, ended.signal]);
      const agent = new Agent({ keepAlive: true });
      const before = flood.refused;
      const clients = Array.from({ length: options.clients }, (_, n) =>
        floodBy({ port, token: flooder, agent, random }, `${round}-${n}`, flood, signal),
      );
      // The flood is at its height when it has been refused, or has had the time for it.
      for (const until = performance.now() + 3_000; performance.now() < until && flood.refused === before;) await pause(20);
      rounds.push({ idle, flooded: await turnsOf({ port, token: other }, options.turns, `flooded-${round}`) });
      over.abort();
      await Promise.all(clients);
      agent.destroy();
      // The rest of the flood has ended when the next round begins.
      if (round + 1 < options.rounds) await pause(300);
    }
    return { rounds, flood };
  } finally {
    ended.abort();
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

/** Runs one turn after the other, each in a new conversation. */
async function turnsOf(target: { readonly port: number; readonly token: string }, turns: number, name: string): Promise<Times> {
  const agent = new Agent({ keepAlive: true });
  const times: number[] = [];
  const failed: string[] = [];
  for (let n = 0; n < turns && failed.length < 5; n += 1) {
    const begun = performance.now();
    try {
      await rpcCall({ ...target, agent }, 'agent.execute', { message: 'Hello', sessionKey: `${name}-${n}:fair` }, { timeoutMs: 10_000 });
    } catch (error) {
      failed.push(String(error));
    }
    times.push(performance.now() - begun);
  }
  agent.destroy();
  const at = (share: number) => Math.round(percentile(times, share));
  return { turns, failed, ms: times, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** Sends again as soon as it is answered; after a refusal a little later, whatever the answer says. */
async function floodBy(
  target: { readonly port: number; readonly token: string; readonly agent: Agent; readonly random: Random },
  client: string,
  flood: { answered: number; refused: number },
  signal: AbortSignal,
): Promise<void> {
  for (let n = 0; !signal.aborted; n += 1) {
    try {
      await rpcCall(target, 'agent.execute', { message: 'More', sessionKey: `flood-${client}-${n}:fair` }, { signal, timeoutMs: 600_000 });
      flood.answered += 1;
    } catch {
      // Also a connection that was not accepted, or cut.
      if (signal.aborted) return;
      flood.refused += 1;
      await pause(1_000 + target.random.int(2_000));
    }
  }
}

/**
 * Checks that the other one's turns took at most twice the time that they take alone, all rounds together, and that none was refused.
 * The slowest quarter of few turns shows only the machine.
 */
export function isFair({ rounds }: R20Report): boolean {
  const flooded = rounds.flatMap((round) => round.flooded.ms);
  const idle = rounds.flatMap((round) => round.idle.ms);
  const share = flooded.length >= 100 ? 0.99 : 0.75;
  return rounds.every((round) => round.flooded.failed.length === 0) && percentile(flooded, share) <= 2 * percentile(idle, share);
}
