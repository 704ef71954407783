import { createHmac } from 'node:crypto';
import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeProvider, type FakeRequest, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { bellsOf } from './lib/bells.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { http } from './lib/http.ts';
import { startMcpBoard } from './lib/mcp-board.ts';
import { answerTo, nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R2: outward messages are sent once. The daemon is killed at random moments while jobs deliver, turns answer into the inbox,
 * heartbeats report, and turns post by an external tool, which cannot be asked whether a call arrived. After each
 * restart every message exists at most once, those that were promised exist, and a post whose outcome is unknown is
 * marked `unknown` and never sent again.
 */
export interface R2Options {
  readonly rounds: number;
  readonly seed: number;
  readonly broken?: string;
  /** The kill comes within so many milliseconds after the clients started. */
  readonly killWithinMs?: number;
  /** Short runs continue until this holds, for up to thirty rounds more. */
  readonly until?: (soFar: Pick<R2Report, 'sent' | 'doubled' | 'unknown'>) => boolean;
  readonly progress?: (line: string) => void;
}

export const sendings = ['delivery', 'answer', 'post', 'hook', 'beat'] as const;
type Sending = (typeof sendings)[number];

export interface R2Report {
  readonly seed: number;
  readonly kills: number;
  /** Sent once, by the kind of sender. */
  readonly sent: Readonly<Record<Sending, number>>;
  /** Posts that were in flight at the kill, and reported so. */
  readonly unknown: number;
  readonly doubled: readonly string[];
  /** Promised, and neither sent nor reported as unknown. */
  readonly missing: readonly string[];
  /** Reported as sent and not sent, or the other way round. */
  readonly untrue: readonly string[];
}

interface Order {
  readonly kind: Sending;
  readonly nonce: string;
  acked: boolean;
}

/** Rounds in addition to those of the options, until the condition of a short run holds. */
const mostMore = 30;
const hookSecret = 'secret-of-the-webhooks-of-the-proving-suite';
const posting = 'Please post';
const postTool = 'mcp__board--post';
/** Number of agents that can be woken one after the other before the first may beat again. */
const beatingAgents = 40;
/** A beat that a busy machine refuses is repeated after half a minute. */
const withinMs = 75_000;

const Inbox = z.object({ messages: z.array(z.object({ id: z.string(), text: z.string() })) });
const Runs = z.object({ runs: z.array(z.object({ status: z.string() })) });
const Deliveries = z.object({
  deliveries: z.array(z.object({ deliveryId: z.string(), state: z.string(), message: z.string() })),
  hasMore: z.boolean(),
});

export async function proveSentOnce(options: R2Options): Promise<R2Report> {
  const random = randomFrom(options.seed);
  const board = await startMcpBoard(() => '', { postMs: 40 });
  const provider = await startPostingProvider();
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, configOf(provider.url, board.url));
  const start = () => startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
  const orders: Order[] = [];
  /** Ids of the messages that contain a nonce, over all checks: the inbox keeps only the newest. */
  const seen = new Map<string, Set<string>>();
  const found = { sent: { delivery: 0, answer: 0, post: 0, hook: 0, beat: 0 }, unknown: 0, missing: [] as string[], untrue: [] as string[] };
  const doubled = () => [
    ...[...seen].flatMap(([nonce, ids]) => (ids.size > 1 ? [`${nonce} is ${ids.size} times in the inbox`] : [])),
    ...[...Map.groupBy(board.posts, (nonce) => nonce)].flatMap(([nonce, { length }]) => (length > 1 ? [`${nonce} was posted ${length} times`] : [])),
  ];
  let kills = 0;
  let daemon = await start();
  try {
    const holds = () => options.until?.({ ...found, doubled: doubled() }) ?? true;
    for (; kills < options.rounds || (kills < options.rounds + mostMore && !holds());) {
      const round = await oneKill(daemon, kills, random, options.killWithinMs ?? 600);
      orders.push(...round);
      kills += 1;
      await ageBoots(home);
      daemon = await start();
      await verify(daemon, round, { seen, posts: board.posts, found });
      options.progress?.(
        `R2 kill ${kills}/${options.rounds}: ${round.filter(({ acked }) => acked).length} of ${round.length} promised, doubled ${doubled().length}, missing ${found.missing.length}, untrue ${found.untrue.length}, unknown ${found.unknown}${found.missing.length > 0 ? `; ${found.missing.at(-1)}` : ''}`,
      );
    }
    // A later start would have repeated messages by now.
    await lookIntoInbox(daemon, seen, () => false);
  } finally {
    await daemon.kill();
    await provider.close();
    await board.close();
    await removeHome(home);
  }
  return { seed: options.seed, kills, ...found, doubled: doubled() };
}

function configOf(providerUrl: string, boardUrl: string) {
  const worker = { model: 'local/test-model', maxConcurrentRuns: 1000, memory: { recall: { enabled: false } } };
  const numbers = Array.from({ length: beatingAgents }, (_, index) => index);
  const beating = numbers.map((n) => [`beat-${n}`, { ...worker, heartbeat: { enabled: true, intervalMs: 86_400_000 } }]);
  const wakes = numbers.map((n) => ({
    id: `wake-${n}`,
    match: { path: `wake-${n}` },
    action: 'wake',
    agentId: `beat-${n}`,
    messageTemplate: '{{text}}',
  }));
  const posts = { id: 'post', match: { path: 'post' }, sessionKey: '{{key}}', messageTemplate: '{{text}}' };
  return {
    ...proofConfig(providerUrl, {
      agents: {
        default: { ...worker, tools: { profile: 'full', discovery: { mode: 'never' } }, originTools: { webhook: [postTool] } },
        ...Object.fromEntries(beating),
      },
      mcp: { servers: { board: { transport: 'http', url: boardUrl, allowPrivate: true, maxConcurrency: 16 } } },
      approvals: { rules: [{ tools: [postTool], action: 'auto', tainted: true }] },
      webhooks: { token: hookSecret, mappings: [...wakes, posts] },
    }),
    scheduler: { cron: { maxJobs: 10_000, maxRunsPerTick: 100, builtIn: { memoryLifecycle: { enabled: false } } } },
  };
}

/** Posts once what it is asked to post, and says whether it was posted; repeats the nonces of anything else. */
function startPostingProvider(): Promise<FakeProvider> {
  return startFakeProvider({
    journal: 0,
    answer: ({ body, path }: FakeRequest) => {
      if (!path.endsWith('/chat/completions')) return undefined;
      const { messages } = z.object({ messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })) }).parse(body);
      const asked = messages.findLastIndex(({ role }) => role === 'user');
      const said = JSON.stringify(messages[asked]);
      const nonces = noncesIn(said);
      const result = messages.slice(asked).find(({ role }) => role === 'tool');
      if (!said.includes(posting)) return { text: nonces.map(answerTo).join('\n') };
      if (result === undefined) return { toolCalls: [{ id: 'post_1', name: postTool, arguments: JSON.stringify({ text: nonces[0] }) }] };
      return { text: `${String(result.content).includes('posted') ? 'posted' : 'refused'} ${nonces[0]}` };
    },
  });
}

/** Lets clients send orders until the daemon is killed; returns the orders. */
async function oneKill(daemon: Daemon, round: number, random: Random, killWithinMs: number): Promise<Order[]> {
  const orders: Order[] = [];
  const agent = new Agent({ keepAlive: true });
  const target = { port: daemon.port, token: daemon.token, agent };
  const bell = await bellsOf(daemon);
  let killed = false;

  async function order(kind: Sending, send: (nonce: string) => Promise<unknown>): Promise<void> {
    const one: Order = { kind, nonce: nonceOf([kind, round, orders.length]), acked: false };
    orders.push(one);
    try {
      await send(one.nonce);
      one.acked = true;
    } catch (error) {
      // A loaded machine may be slower than the daemon promises to be; then it says so.
      if (!killed && !/-32006|HTTP 503/.test(String(error))) throw error;
    }
  }
  const job = (kind: Sending, payload: (nonce: string) => object) =>
    order(kind, async (nonce) => {
      const delivered = bell(nonce, { kind: 'every', everyMs: 86_400_000 });
      await rpcCall(target, 'cron.add', { ...delivered, payload: payload(nonce) });
      await rpcCall(target, 'cron.run', { jobName: nonce });
    });
  const hook = (kind: Sending, path: string, textOf: (nonce: string) => string) =>
    order(kind, async (nonce) => {
      const body = JSON.stringify({ text: textOf(nonce), key: nonce });
      const headers = { 'x-webhook-signature': createHmac('sha256', hookSecret).update(body).digest('hex') };
      const { status, text } = await http({ port: daemon.port, path: `/hooks/${path}`, headers, body, agent });
      if (status !== 200) throw new Error(`/hooks/${path}: HTTP ${status} ${text.slice(0, 200)}`);
    });
  const turn = (words: string) => (nonce: string) => ({ kind: 'agent_turn', message: `${words} ${nonce}` });
  const loops: readonly (() => Promise<void>)[] = [
    () => job('delivery', (nonce) => ({ kind: 'delivery', text: nonce })),
    () => job('answer', turn('Please note')),
    () => job('post', turn(posting)),
    () => hook('hook', 'post', (nonce) => `${posting} ${nonce}`),
  ];
  const work = [
    // Two in each round, so that an agent's turn comes again when it may beat again.
    ...[0, 1].map((n) => hook('beat', `wake-${(2 * round + n) % beatingAgents}`, (nonce) => `It rings: ${nonce}`)),
    ...loops.map(async (once) => {
      while (!killed) {
        await once();
        await pause(10);
      }
    }),
  ];
  const failed = Promise.all(work);
  failed.catch(() => undefined);
  await pause(random.next() * killWithinMs);
  killed = true;
  await daemon.kill();
  await failed;
  agent.destroy();
  return orders;
}

interface Look {
  readonly seen: Map<string, Set<string>>;
  readonly posts: readonly string[];
  readonly found: { sent: Record<Sending, number>; unknown: number; readonly missing: string[]; readonly untrue: string[] };
}

/** Waits until everything that was promised has ended, and checks the result. */
async function verify(daemon: Daemon, orders: readonly Order[], { seen, posts, found }: Look): Promise<void> {
  const ends = new Map<string, string>();
  const isOver = (end: string): boolean => !['accepted', 'running', 'started', ''].includes(end);
  for (const until = performance.now() + withinMs; performance.now() < until; await pause(50)) {
    const hooks = await listDeliveries(daemon);
    for (const { kind, nonce } of orders) if (!isOver(ends.get(nonce) ?? '')) ends.set(nonce, await endOf(daemon, kind, nonce, hooks));
    // The report of a heartbeat has no other end.
    const awaited = (nonce: string) => seen.get(nonce) === undefined;
    await lookIntoInbox(daemon, seen, (oldest) => orders.some(({ nonce }) => nonce === oldest));
    if (
      orders.every(({ kind, nonce, acked }) =>
        kind === 'beat' ? !acked || !awaited(nonce) : isOver(ends.get(nonce) ?? '') || (!acked && ends.get(nonce) === ''),
      )
    )
      break;
  }
  for (const { kind, nonce, acked } of orders) {
    const end = ends.get(nonce) ?? '';
    const inboxed = seen.get(nonce)?.size ?? 0;
    const posted = posts.filter((one) => one === nonce).length;
    const isPost = kind === 'post' || kind === 'hook';
    const line = `${kind} ${nonce}: ended as "${end}", ${inboxed} times in the inbox, posted ${posted} times`;
    if (end === 'unknown') {
      found.unknown += 1;
      if (!isPost || inboxed > 0) found.untrue.push(line);
      continue;
    }
    const sent = kind === 'hook' ? posted : inboxed;
    if (sent > 0) found.sent[kind] += 1;
    else if (acked) found.missing.push(line);
    // A turn that claims to have posted has done so.
    if (kind === 'post' && inboxed > 0 && posted === 0) found.untrue.push(line);
  }
}

/** Returns its entry in the ledger; empty when there is none. */
async function endOf(daemon: Daemon, kind: Sending, nonce: string, hooks: readonly { readonly state: string; readonly message: string }[]) {
  if (kind === 'beat' || kind === 'hook') return hooks.find(({ message }) => message.includes(nonce))?.state ?? '';
  const { runs } = await rpcCall(daemon, 'cron.runs', { jobName: nonce }).then(
    (result) => Runs.parse(result),
    () => ({ runs: [] }),
  );
  return runs[0]?.status ?? '';
}

async function listDeliveries(daemon: Daemon) {
  return Deliveries.parse(await rpcCall(daemon, 'webhooks.deliveries', { limit: 200 })).deliveries;
}

/** Records which messages contain which nonces, page by page for as long as they are those of `isRecent`. */
async function lookIntoInbox(daemon: Daemon, seen: Map<string, Set<string>>, isRecent: (nonce: string) => boolean): Promise<void> {
  let before: string | undefined;
  do {
    const { messages } = Inbox.parse(await rpcCall(daemon, 'inbox.list', { limit: 100, ...(before !== undefined && { before }) }));
    for (const { id, text } of messages) for (const nonce of noncesIn(text)) seen.set(nonce, (seen.get(nonce) ?? new Set()).add(id));
    const last = messages.at(-1);
    before = last !== undefined && noncesIn(last.text).some(isRecent) ? last.id : undefined;
  } while (before !== undefined);
}
