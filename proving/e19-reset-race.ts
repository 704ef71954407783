import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { answerTo, askWith, nonceOf, noncesIn, proofConfig, startReviewingProvider } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { inParallel } from './lib/raw.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * E19, E20: messages that race the erasure of their conversation are wholly before it and gone, or wholly after it and kept, and none that
 * is kept was answered with erased text. Deleting a conversation keeps its memories.
 */
export interface E19Report {
  readonly rounds: number;
  readonly gone: number;
  readonly kept: number;
  /** Memories of the conversation before and after it was deleted, and after its erasure with `memory`. */
  readonly memories: { readonly before: number; readonly afterDelete: number; readonly afterErasure: number };
  readonly wrong: readonly string[];
}

/** The most messages that may be queued in one conversation, plus the running one and the erasure. */
const senders = 40;
const providerMs = 4;

const Erased = z.looseObject({ messagesDeleted: z.number(), runtimeSessionDestroyed: z.boolean() });
const History = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.string() })), total: z.number() });
const Stats = z.looseObject({ totalEntries: z.number() });

export async function proveResetRace(options: {
  readonly rounds: number;
  readonly messages: number;
  readonly seed: number;
  readonly broken?: string;
  /** Ends the rounds early. */
  readonly until?: (report: Pick<E19Report, 'rounds' | 'kept'>) => boolean;
}): Promise<E19Report> {
  const random = randomFrom(options.seed);
  const report = { rounds: 0, gone: 0, kept: 0, memories: { before: 0, afterDelete: 0, afterErasure: 0 }, wrong: [] as string[] };
  const home = await makeHome();
  const port = await freePort();
  const provider = await startReviewingProvider({ delayMs: providerMs, journal: 10_000 });
  const memory = { review: { minMessages: 1, dedupThreshold: 1 } };
  await writeConfig(home, proofConfig(provider.url, { agents: { default: { model: 'local/test-model', maxConcurrentRuns: 100, memory } } }));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    for (let round = 0; round < options.rounds; round += 1) {
      const race = await runRace(daemon, round, options.messages, random);
      judge(
        race,
        provider.requests.map(({ body }) => noncesIn(body)),
        (fault) => report.wrong.push(`round ${round}: ${fault}`),
      );
      report.rounds += 1;
      report.kept += race.kept.length;
      report.gone += race.acked.size - race.kept.length;
      if (options.until?.(report) === true) break;
    }
    report.memories = await keepMemories(daemon);
    const { before, afterDelete, afterErasure } = report.memories;
    if (before === 0 || afterDelete !== before)
      report.wrong.push(`${before} memories before the conversation was deleted, ${afterDelete} afterwards`);
    if (afterErasure !== 0) report.wrong.push(`${afterErasure} memories are left after the erasure with memory`);
    return report;
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

interface Race {
  /** Nonces of the messages that were acknowledged, with when they were sent and answered. */
  readonly acked: ReadonlyMap<string, { readonly sentMs: number; readonly answeredMs: number }>;
  readonly reset: { readonly sentMs: number; readonly answeredMs: number; readonly messagesDeleted: number };
  /** Nonces of the stored questions, in their order. */
  readonly kept: readonly string[];
  readonly history: readonly { readonly role: string; readonly content: string }[];
  readonly repeated: readonly z.output<typeof Erased>[];
}

async function runRace(daemon: Daemon, round: number, messages: number, random: Random): Promise<Race> {
  const agent = new Agent({ keepAlive: true });
  const target = { ...daemon, agent };
  const sessionKey = `race-${round}:desk`;
  const acked = new Map<string, { sentMs: number; answeredMs: number }>();
  const after = Math.floor(messages / 4) + random.int(Math.floor(messages / 2));
  const begin = Promise.withResolvers<void>();
  const sending = inParallel(Array.from({ length: messages }).keys(), senders, async (n) => {
    const nonce = nonceOf(['race', round, n]);
    const sentMs = performance.now();
    await rpcCall(target, 'agent.execute', { message: askWith(nonce), sessionKey });
    acked.set(nonce, { sentMs, answeredMs: performance.now() });
    if (acked.size >= after) begin.resolve();
  });
  await begin.promise;
  const sentMs = performance.now();
  const { messagesDeleted } = Erased.parse(await rpcCall(target, 'session.reset_conversation', { sessionKey }));
  const reset = { sentMs, answeredMs: performance.now(), messagesDeleted };
  await sending;
  const { messages: history } = History.parse(await rpcCall(target, 'session.history', { sessionKey, limit: 200 }));
  const repeated: z.output<typeof Erased>[] = [];
  for (let n = 0; n < 2; n += 1) repeated.push(Erased.parse(await rpcCall(target, 'session.reset_conversation', { sessionKey })));
  agent.destroy();
  const kept = history.filter(({ role }) => role === 'user').flatMap(({ content }) => noncesIn(content));
  return { acked, reset, kept, history, repeated };
}

function judge({ acked, reset, kept, history, repeated }: Race, prompts: readonly (readonly string[])[], say: (fault: string) => void): void {
  const isKept = new Set(kept);
  history.forEach(({ role, content }, index) => {
    const nonce = kept[index >> 1] ?? '';
    if (content !== (index % 2 === 0 ? askWith(nonce) : answerTo(nonce)) || role !== (index % 2 === 0 ? 'user' : 'assistant'))
      say(`message ${index + 1} is ${role} ${content}`);
  });
  if (reset.messagesDeleted !== 2 * (acked.size - kept.length))
    say(`${reset.messagesDeleted} messages were erased, ${acked.size} turns answered and ${kept.length} kept`);
  for (const [nonce, { sentMs, answeredMs }] of acked) {
    if (answeredMs < reset.sentMs && isKept.has(nonce)) say(`${nonce} was answered before the erasure was requested, and still exists`);
    if (sentMs > reset.answeredMs && !isKept.has(nonce)) say(`${nonce} came after the erasure, and is gone`);
  }
  for (const nonces of prompts) {
    const [asked, ...before] = nonces.toReversed();
    const source = before.find((nonce) => acked.has(nonce) && !isKept.has(nonce));
    if (asked !== undefined && isKept.has(asked) && source !== undefined) say(`${asked} is kept and was answered with ${source}, which was erased`);
  }
  if (repeated[0]?.messagesDeleted !== history.length) say(`a second erasure took ${repeated[0]?.messagesDeleted} of ${history.length} messages`);
  if (repeated[1]?.messagesDeleted !== 0 || repeated[1].runtimeSessionDestroyed)
    say(`a third erasure is not without effect: ${JSON.stringify(repeated[1])}`);
}

/** The memories of a review survive the conversation until they are erased by name. */
async function keepMemories(daemon: Daemon): Promise<E19Report['memories']> {
  const count = async (): Promise<number> => Stats.parse(await rpcCall(daemon, 'memory.stats', {})).totalEntries;
  const { conversationRef } = z
    .looseObject({ conversationRef: z.string() })
    .parse(await rpcCall(daemon, 'agent.execute', { message: askWith(nonceOf(['remembered'])), sessionKey: 'remembered:desk' }));
  await rpcCall(daemon, 'memory.review', {});
  const before = await count();
  await rpcCall(daemon, 'session.delete', { conversationRef });
  const afterDelete = await count();
  await rpcCall(daemon, 'session.reset_conversation', { conversationRef, memory: true });
  return { before, afterDelete, afterErasure: await count() };
}
