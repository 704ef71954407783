import { createHmac } from 'node:crypto';
import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeProvider, type FakeRequest, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { answerTo, askWith, nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R12: a daemon that is stopped while fifty turns run drops nothing that it has acknowledged. Requests whose answer comes within
 * the drain time get it; webhooks and jobs whose turns take longer, and those that arrive while it stops, are done by the next start,
 * each once. It is gone within the drain time and two seconds.
 */
export interface R12Options {
  readonly stops: number;
  readonly seed: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface R12Report {
  readonly seed: number;
  readonly stops: number;
  /** Turns that ran at the moments of the signals, at least. */
  readonly running: number;
  readonly drainMs: number;
  /** Slowest time from the signal until the process was gone. */
  readonly slowestMs: number;
  readonly acked: Readonly<Record<Kind, number>>;
  /** Webhooks accepted while it stopped. */
  readonly late: number;
  /** Requests that took longer than the drain, and were answered so. */
  readonly cut: number;
  readonly dropped: readonly string[];
  readonly wrong: readonly string[];
}

export const stopKinds = ['hook', 'job', 'stream', 'rpc'] as const;
type Kind = (typeof stopKinds)[number];

const perKind: Readonly<Record<Kind, number>> = { hook: 20, job: 10, stream: 10, rpc: 10 };
const drainMs = 3_000;
const graceMs = 2_000;
/** Requests that must be answered in time end half a second before the drain. */
const marginMs = 500;
const hookSecret = 'secret-of-the-webhooks-of-the-proving-suite';
const withinMs = 40_000;

interface Order {
  readonly kind: Kind;
  readonly nonce: string;
  /** How long the model takes over it. */
  readonly takesMs: number;
  /** The daemon's answer: for requests, the whole answer. */
  acked: boolean;
  refused?: string;
}

const Runs = z.object({ runs: z.array(z.object({ status: z.string() })) });
const Turn = z.object({ response: z.string() });
const Deliveries = z.object({ deliveries: z.array(z.object({ state: z.string(), message: z.string(), conversationRef: z.string() })) });
const Conversations = z.object({ sessions: z.array(z.object({ conversationRef: z.string() })), hasMore: z.boolean() });
const History = z.object({ messages: z.array(z.object({ role: z.string(), content: z.string() })) });

export async function proveStopUnderLoad(options: R12Options): Promise<R12Report> {
  const random = randomFrom(options.seed);
  const begunAt = new Map<string, number>();
  const delays = new Map<string, number>();
  const provider = await startSlowProvider(begunAt, delays);
  const home = await makeHome();
  const port = await freePort();
  const mappings = [{ id: 'r12', sessionKey: '{{key}}', messageTemplate: '{{text}}' }];
  await writeConfig(home, {
    ...proofConfig(provider.url, {
      gateway: { drainTimeoutMs: drainMs },
      // Each turn has its own conversation; earlier rounds are not its concern.
      agents: { default: { model: 'local/test-model', maxConcurrentRuns: 1000, memory: { recall: { enabled: false } } } },
      webhooks: { token: hookSecret, mappings },
    }),
    scheduler: { cron: { maxJobs: 10_000, builtIn: { memoryLifecycle: { enabled: false } } } },
  });
  const start = () => startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
  const acked: Record<Kind, number> = { hook: 0, job: 0, stream: 0, rpc: 0 };
  const found = { running: Infinity, slowestMs: 0, late: 0, cut: 0, dropped: [] as string[], wrong: [] as string[] };
  let daemon = await start();
  try {
    for (let stop = 0; stop < options.stops; stop += 1) {
      const orders = await oneStop(daemon, stop, random, { begunAt, delays, found });
      // The rest ends quickly.
      delays.clear();
      daemon = await start();
      await verify(daemon, orders, found);
      for (const order of orders) if (order.acked) acked[order.kind] += 1;
      options.progress?.(
        `R12 stop ${stop + 1}/${options.stops}: ${found.running} turns ran at least, gone after at most ${found.slowestMs} ms, ${found.cut} requests cut, dropped ${found.dropped.length}, wrong ${found.wrong.length}`,
      );
    }
  } finally {
    await daemon.kill();
    await provider.close();
    await removeHome(home);
  }
  return { seed: options.seed, stops: options.stops, drainMs, acked, ...found };
}

/** Answers each nonce after its own time; remembers when it was first requested. */
function startSlowProvider(begunAt: Map<string, number>, delays: ReadonlyMap<string, number>): Promise<FakeProvider> {
  return startFakeProvider({
    journal: 0,
    answer: ({ body, path }: FakeRequest) => {
      if (!path.endsWith('/chat/completions')) return undefined;
      const nonce = noncesIn(body).at(-1) ?? 'nothing';
      if (!begunAt.has(nonce)) begunAt.set(nonce, performance.now());
      return { text: answerTo(nonce), delayMs: delays.get(nonce) ?? 50 };
    },
  });
}

interface StopContext {
  readonly begunAt: ReadonlyMap<string, number>;
  readonly delays: Map<string, number>;
  readonly found: { running: number; slowestMs: number; late: number; cut: number; readonly dropped: string[]; readonly wrong: string[] };
}

/** Starts fifty turns; then sends the signal, webhooks meanwhile, and waits for the exit. */
async function oneStop(daemon: Daemon, stop: number, random: Random, { begunAt, delays, found }: StopContext): Promise<Order[]> {
  const agent = new Agent({ keepAlive: true });
  const orders: Order[] = [];
  const order = (kind: Kind): Order => {
    // From well within the drain, at least one of each kind, to well beyond it; none ends before all of them have started.
    const isFirst = orders.every((other) => other.kind !== kind);
    const one: Order = { kind, nonce: nonceOf([kind, stop, orders.length]), takesMs: 1_500 + (isFirst ? 0 : random.int(2 * drainMs)), acked: false };
    delays.set(one.nonce, one.takesMs);
    orders.push(one);
    return one;
  };
  const first = stopKinds.flatMap((kind) => Array.from({ length: perKind[kind] }, () => order(kind)));
  const requests = first.map((one) => send(daemon, agent, one));
  for (const until = performance.now() + 20_000; first.some(({ nonce }) => !begunAt.has(nonce)) && performance.now() < until;) await pause(5);
  const now = performance.now();
  const isRunning = ({ nonce, takesMs }: Order): boolean => (begunAt.get(nonce) ?? Infinity) + takesMs > now;
  found.running = Math.min(found.running, first.filter(isRunning).length);
  await pause(random.int(200));

  const signalledAt = performance.now();
  const ended = daemon.stop(drainMs + 15_000);
  let isGone = false;
  void ended.then(() => (isGone = true));
  // An answer of 200 promises as much now as before.
  const late: Promise<void>[] = [];
  for (let sent = 0; !isGone && sent < 20; sent += 1) {
    late.push(send(daemon, agent, order('hook')));
    await pause(50);
  }
  const { code, signal } = await ended;
  const tookMs = Math.round(performance.now() - signalledAt);
  await Promise.all([...requests, ...late]);
  agent.destroy();
  found.slowestMs = Math.max(found.slowestMs, tookMs);
  found.late += orders.slice(first.length).filter(({ acked }) => acked).length;
  if (tookMs > drainMs + graceMs) found.wrong.push(`stop ${stop}: gone after ${tookMs} ms, the drain is ${drainMs} ms`);
  if (code !== 0) found.wrong.push(`stop ${stop}: ended with ${code ?? signal}`);
  for (const one of first) {
    if (one.kind === 'hook' || one.kind === 'job') {
      if (!one.acked) found.wrong.push(`${one.kind} ${one.nonce}: ${one.refused}`);
    } else if (!one.acked) {
      const endMs = (begunAt.get(one.nonce) ?? Infinity) + one.takesMs;
      if (endMs < signalledAt + drainMs - marginMs)
        found.dropped.push(
          `${one.kind} ${one.nonce}: was over ${Math.round(endMs - signalledAt)} ms after the signal, and was answered with ${one.refused}`,
        );
      else found.cut += 1;
    }
  }
  return orders;
}

/** Resolves when it is answered, or is known not to be. */
async function send({ port, token }: Daemon, agent: Agent, order: Order): Promise<void> {
  const { kind, nonce } = order;
  const timeoutMs = 30_000;
  try {
    if (kind === 'hook') {
      const body = JSON.stringify({ text: askWith(nonce), key: nonce });
      const headers = { 'x-webhook-signature': createHmac('sha256', hookSecret).update(body).digest('hex') };
      const { status, text } = await http({ port, path: '/hooks/r12', headers, body, agent, timeoutMs });
      if (status !== 200) throw new Error(`HTTP ${status} ${text.slice(0, 100)}`);
    } else if (kind === 'job') {
      const payload = { kind: 'agent_turn', message: askWith(nonce) };
      await rpcCall({ port, token, agent }, 'cron.add', { name: nonce, schedule: { kind: 'every', everyMs: 86_400_000 }, payload });
      await rpcCall({ port, token, agent }, 'cron.run', { jobName: nonce });
    } else if (kind === 'rpc') {
      const params = { message: askWith(nonce), sessionKey: `${nonce}:desk` };
      const { response } = Turn.parse(await rpcCall({ port, token, agent }, 'agent.execute', params, { timeoutMs }));
      if (response !== answerTo(nonce)) throw new Error(`the answer "${response}"`);
    } else {
      const body = { message: askWith(nonce), sessionKey: `${nonce}:desk` };
      const { status, text } = await http({ port, path: '/api/chat/stream', headers: bearer(token), body, agent, timeoutMs });
      if (status !== 200 || !text.includes('event: done') || !text.includes(nonce)) throw new Error(`HTTP ${status} ${text.slice(-200)}`);
    }
    order.acked = true;
  } catch (error) {
    order.refused = String(error);
  }
}

/** Checks that everything acknowledged exists after the next start, once. */
async function verify(daemon: Daemon, orders: readonly Order[], found: StopContext['found']): Promise<void> {
  const target = { port: daemon.port, token: daemon.token, agent: new Agent({ keepAlive: true }) };
  const open = new Set(orders.filter(({ kind, acked }) => acked && (kind === 'hook' || kind === 'job')));
  for (const until = performance.now() + withinMs; open.size > 0 && performance.now() < until; await pause(100)) {
    const { deliveries } = Deliveries.parse(await rpcCall(target, 'webhooks.deliveries', { limit: 200 }));
    for (const order of open) {
      if (order.kind === 'hook') {
        const own = deliveries.filter(({ message }) => message === askWith(order.nonce));
        if (own.length === 1 && own[0]?.state === 'done') open.delete(order);
      } else {
        const { runs } = Runs.parse(await rpcCall(target, 'cron.runs', { jobName: order.nonce }));
        if (runs.length === 1 && runs[0]?.status === 'completed') open.delete(order);
      }
    }
  }
  for (const { kind, nonce } of open) found.dropped.push(`${kind} ${nonce}: acknowledged, and not done after the next start`);
  const said = await everythingSaid(target);
  for (const { kind, nonce, acked } of orders) {
    const asked = said.filter(
      ({ role, content }) => role === 'user' && (content === askWith(nonce) || content.includes(`${askWith(nonce)}\n`)),
    ).length;
    const answered = said.filter(({ role, content }) => role === 'assistant' && content === answerTo(nonce)).length;
    const line = `${kind} ${nonce}: question ${asked} times, answer ${answered} times`;
    if (asked > 1 || answered > 1 || asked < answered) found.wrong.push(line);
    if (acked && (asked !== 1 || answered !== 1)) found.dropped.push(line);
  }
  target.agent.destroy();
}

async function everythingSaid(target: Parameters<typeof rpcCall>[0]) {
  const said: z.output<typeof History>['messages'] = [];
  for (let offset = 0; ; offset += 200) {
    const page = Conversations.parse(await rpcCall(target, 'session.list', { offset, limit: 200 }));
    for (const { conversationRef } of page.sessions)
      said.push(...History.parse(await rpcCall(target, 'session.history', { conversationRef })).messages);
    if (!page.hasMore) return said;
  }
}
