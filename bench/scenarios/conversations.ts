import { setTimeout as sleep } from 'node:timers/promises';
import { runHttpLoad } from '../lib/client.ts';
import { fillConversations, sentence } from '../lib/fill.ts';
import type { Measures } from '../lib/measures.ts';
import type { Product } from '../lib/targets.ts';

/** Milliseconds of an answer, one caller at a time, by method. */
export type ConversationSamples = Map<string, { readonly p50: number; readonly p95: number }[]>;

export interface ConversationOptions {
  readonly subject: Product;
  readonly conversations: number;
  /** Messages of each. */
  readonly messages: number;
  /** Calls of each method in a round. */
  readonly calls: number;
  readonly rounds: number;
  readonly settleMs: number;
}

const agentId = 'default';

/** Measures lists, histories and searches over much data. */
export async function runConversations(options: ConversationOptions, measures: Measures): Promise<ConversationSamples> {
  const { subject, conversations, messages, calls } = options;
  // The first start creates the database.
  await (await subject.start()).stop();
  const refs = await fillConversations(subject.dataDir, { conversations, messages, agentId });
  const running = await subject.start();
  try {
    const target = subject.target(running);
    await sleep(options.settleMs);
    // Multipliers without a common factor with the counts: calls are spread over everything.
    const ask = {
      list: (n: number) => ({ method: 'session.list', params: { agentId, limit: 50, offset: (n * 37) % conversations } }),
      history: (n: number) => ({
        method: 'session.history',
        params: { conversationRef: refs[(n * 7919) % conversations], limit: 50, offset: (n * 13) % messages },
      }),
      search: (n: number) => {
        const [one = '', two = ''] = sentence(n, n).split(' ');
        // Words of every conversation, and a name of one.
        return {
          method: 'session.search',
          params: { agentId, query: n % 2 === 0 ? `${one} ${two}` : `c${(n * 7919) % conversations} n${(n % messages) + 1}` },
        };
      },
    };
    const samples: ConversationSamples = new Map();
    for (let round = -1; round < options.rounds; round += 1)
      for (const [name, make] of Object.entries(ask)) {
        const bodies = Array.from({ length: calls }, (_, n) => ({ jsonrpc: '2.0', id: n, ...make(n + (round + 1) * calls) }));
        const load = { url: `${target.url}/rpc`, headers: target.headers, body: undefined, bodies, connections: 1, stream: false };
        const { good, errors, p50, p95 } = await runHttpLoad({ ...load, requests: calls, ms: 60_000 });
        if (good !== calls) throw new Error(`session.${name}: ${good} of ${calls} calls were answered: ${JSON.stringify(errors)}`);
        if (round >= 0) samples.set(name, [...(samples.get(name) ?? []), { p50, p95 }]);
      }
    for (const [name, rounds] of samples) measures.add(`conversations ${name} p95`, ...rounds.map(({ p95 }) => p95));
    return samples;
  } finally {
    await running.stop();
  }
}
