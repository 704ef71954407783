import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { askWith, nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { openSocket, rpcCall } from './lib/rpc.ts';

/** E21: messages sent to one conversation at once are answered one after the other, in the order of their arrival, and each sees all before it. */
export interface E21Report {
  readonly turns: number;
  /** Most model calls of one conversation at the same time. */
  readonly atOnce: number;
  readonly wrong: readonly string[];
}

/** One running message and as many as may be queued. */
const sends = 50;

const History = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.string() })) });

export async function proveArrivalOrder(options: { readonly conversations: number; readonly broken?: string }): Promise<E21Report> {
  const wrong: string[] = [];
  const running = new Map<string, number>();
  let atOnce = 0;
  const home = await makeHome();
  const port = await freePort();
  const provider = await startFakeProvider({
    journal: 0,
    answer({ body }) {
      const nonces = noncesIn(body);
      const [, conversation = '', turn = ''] = /nonce-(\w+)-(\d+)-end/.exec(nonces.at(-1) ?? '') ?? [];
      const now = (running.get(conversation) ?? 0) + 1;
      running.set(conversation, now);
      atOnce = Math.max(atOnce, now);
      // It ends before its answer reaches the daemon, and so before a queued turn can start.
      setTimeout(() => running.set(conversation, (running.get(conversation) ?? 1) - 1), 3);
      if (nonces.length !== Number(turn) + 1) wrong.push(`turn ${turn} of ${conversation} was shown ${nonces.length - 1} before it`);
      return { text: 'noted', delayMs: 5, usage: { input: 1, output: 1 } };
    },
  });
  await writeConfig(home, proofConfig(provider.url));
  let daemon: Daemon | undefined;
  let turns = 0;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    // Frames of one socket arrive in the order in which they were sent.
    const socket = await openSocket({ port, token: daemon.token });
    const all = Array.from({ length: options.conversations }, (_, index) => `c${index}`);
    const calls = Array.from({ length: sends }, (_, n) =>
      all.map(async (name) => {
        await socket.call('agent.execute', { message: askWith(nonceOf([name, n])), sessionKey: `${name}:order` });
        turns += 1;
      }),
    );
    for (const failure of (await Promise.allSettled(calls.flat())).filter((one) => one.status === 'rejected')) wrong.push(String(failure.reason));
    for (const name of all) {
      const { messages } = History.parse(await rpcCall(daemon, 'session.history', { sessionKey: `${name}:order`, limit: 200 }));
      const order = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      if (order.length !== sends || order.some((content, n) => content !== askWith(nonceOf([name, n]))))
        wrong.push(`${name}: ${order.length} turns, not in the order of their arrival`);
    }
    if (atOnce > 1) wrong.push(`${atOnce} turns of one conversation ran at once`);
    socket.close();
    return { turns, atOnce, wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}
