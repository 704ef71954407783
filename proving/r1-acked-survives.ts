import { createHmac } from 'node:crypto';
import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { answerTo, askWith, nonceOf, proofConfig, startEchoProvider } from './lib/provider.ts';
import { randomFrom } from './lib/random.ts';
import { openSocket, RpcFailure, rpcCall } from './lib/rpc.ts';

/**
 * R1: acknowledged writes survive kill -9, whole and once. Nine clients work while the daemon is killed at a
 * random moment; it starts again on the same home and everything that a client had an answer for must exist: for a webhook,
 * whose answer comes before its turn, the turn too.
 */
export interface R1Options {
  readonly rounds: number;
  readonly seed: number;
  /** A broken build of proving/broken; the bundle otherwise. */
  readonly broken?: string;
  /** The kill comes with the first acknowledgement, which a build that breaks the promise has hardly stored yet; at random when absent. */
  readonly killAtAck?: boolean;
  /** Short runs continue until this holds, for up to thirty rounds more. */
  readonly until?: (soFar: { readonly acked: R1Report['acked']; readonly lost: number }) => boolean;
  readonly progress?: (line: string) => void;
}

export const kinds = ['rpc', 'ws', 'v1', 'v1-stream', 'token', 'agent', 'hook'] as const;
type Kind = (typeof kinds)[number];

export interface R1Report {
  readonly seed: number;
  readonly kills: number;
  readonly sent: number;
  readonly acked: Readonly<Record<Kind, number>>;
  /** Acknowledged, but missing after the restart. */
  readonly lost: readonly string[];
  /** Present more than once. */
  readonly doubled: readonly string[];
  /** Present in part: a question without its answer, or usage that does not match the turns. */
  readonly torn: readonly string[];
  /** Answers before the kill that were not acknowledgements. */
  readonly unexpected: readonly string[];
  readonly restartMs: { readonly median: number; readonly max: number };
}

interface Operation {
  readonly kind: Kind;
  readonly nonce: string;
  /** Printed session key of the conversation (turns). */
  readonly sessionKey?: string;
  acked: boolean;
  /** Secret of the token, id of the completion. */
  receipt?: string;
}

const Created = z.object({ secret: z.string() });
const Turn = z.object({ response: z.string(), finishReason: z.string() });
const Completion = z.object({ id: z.string(), choices: z.tuple([z.object({ message: z.object({ content: z.string() }) })]) });
const History = z.object({ messages: z.array(z.object({ seq: z.number(), role: z.string(), content: z.string() })), total: z.number() });
const Sessions = z.object({
  sessions: z.array(z.object({ sessionKey: z.string(), totalTokens: z.number() })),
  total: z.number(),
  hasMore: z.boolean(),
});
const Tokens = z.object({ tokens: z.array(z.object({ id: z.string() })) });
const Agents = z.object({ agents: z.array(z.string()) });
const CacheStats = z.object({ providers: z.array(z.object({ callCount: z.number(), inputTokens: z.number() })) });

const Deliveries = z.object({
  deliveries: z.array(z.object({ deliveryId: z.string(), state: z.string(), message: z.string(), conversationRef: z.string() })),
  hasMore: z.boolean(),
});

/** Shared with the senders of webhooks. */
const hookSecret = 'secret-of-the-webhooks-of-the-proving-suite';

/** Tokens that the fake provider reports for each turn. */
const tokensPerTurn = 30;

/** The kill comes within this time after the clients started. */
const killWithinMs = 500;
/** Rounds in addition to those of the options, until the condition of a short run holds. */
const mostMore = 30;

function countAcked(all: readonly Operation[]): R1Report['acked'] {
  const count = (kind: Kind) => all.filter((operation) => operation.acked && operation.kind === kind).length;
  return Object.fromEntries(kinds.map((kind) => [kind, count(kind)])) as Record<Kind, number>;
}

export async function proveAckedSurvives(options: R1Options): Promise<R1Report> {
  const random = randomFrom(options.seed);
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  const mappings = [{ id: 'r1', sessionKey: '{{key}}', messageTemplate: '{{text}}' }];
  await writeConfig(home, { ...proofConfig(provider.url), webhooks: { token: hookSecret, mappings } });
  const start = () => startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
  const all: Operation[] = [];
  const found = { lost: [] as string[], doubled: [] as string[], torn: [] as string[], unexpected: [] as string[] };
  const restarts: number[] = [];
  let daemon = await start();
  try {
    const holds = () => options.until?.({ acked: countAcked(all), lost: found.lost.length }) ?? true;
    for (let round = 0; round < options.rounds || (round < options.rounds + mostMore && !holds()); round += 1) {
      // Rounds in addition wait longer: on a busy machine slow kinds are not acknowledged sooner.
      const afterMs = random.next() * killWithinMs * (round < options.rounds ? 1 : 4);
      const operations = await oneKill(daemon, round, options.killAtAck === true ? 'first ack' : afterMs, found.unexpected);
      all.push(...operations);
      await ageBoots(home);
      daemon = await start();
      restarts.push(daemon.readyMs);
      await verify(daemon, operations, found);
      const acked = operations.filter((operation) => operation.acked).length;
      options.progress?.(
        `R1 kill ${round + 1}/${options.rounds}: ${acked} of ${operations.length} acknowledged, lost ${found.lost.length}, doubled ${found.doubled.length}, torn ${found.torn.length}, ready again in ${Math.round(daemon.readyMs)} ms`,
      );
    }
    // Once more over everything: no later crash may undo what an earlier check has seen.
    const again = { lost: [] as string[], doubled: [] as string[], torn: [] as string[], unexpected: [] as string[] };
    await verify(daemon, all, again);
    await verifyUsage(daemon, provider.served(), again);
    for (const key of ['lost', 'doubled', 'torn'] as const) found[key].push(...again[key].filter((line) => !found[key].includes(line)));
  } finally {
    await daemon.kill();
    await provider.close();
    await removeHome(home);
  }
  restarts.sort((a, b) => a - b);
  return {
    seed: options.seed,
    kills: restarts.length,
    sent: all.length,
    acked: countAcked(all),
    ...found,
    restartMs: { median: Math.round(restarts[restarts.length >> 1] ?? 0), max: Math.round(restarts.at(-1) ?? 0) },
  };
}

/** Lets nine clients work, kills the daemon and returns what they had sent. */
async function oneKill(daemon: Daemon, round: number, killAt: number | 'first ack', unexpected: string[]): Promise<Operation[]> {
  const operations: Operation[] = [];
  const firstAck = Promise.withResolvers<void>();
  const agent = new Agent({ keepAlive: true });
  const target = { port: daemon.port, token: daemon.token, agent };
  const stop = new AbortController();
  let killed = false;

  function begin(kind: Kind, client: number, sessionKey?: string): Operation {
    const operation: Operation = {
      kind,
      nonce: nonceOf([round, client, operations.length]),
      acked: false,
      ...(sessionKey !== undefined && { sessionKey }),
    };
    operations.push(operation);
    return operation;
  }
  function acknowledge(operation: Operation): void {
    operation.acked = true;
    firstAck.resolve();
  }
  async function repeat(once: () => Promise<void>): Promise<void> {
    while (!killed) {
      try {
        await once();
      } catch (error) {
        // After the kill every open call breaks; before it none may.
        if (!killed) unexpected.push(`round ${round}: ${String(error)}`);
        return;
      }
    }
  }
  function checkTurn(operation: Operation, result: unknown): void {
    const turn = Turn.parse(result);
    if (turn.response !== answerTo(operation.nonce))
      throw new Error(`${operation.nonce} was answered with "${turn.response}" (${turn.finishReason})`);
    acknowledge(operation);
  }
  const rpcTurns = (client: number) =>
    repeat(async () => {
      const key = `r1:http-${client}:${round}`;
      const operation = begin('rpc', client, key);
      checkTurn(operation, await rpcCall(target, 'agent.execute', { message: askWith(operation.nonce), sessionKey: key }, { signal: stop.signal }));
    });
  const socketTurns = async (client: number) => {
    const socket = await openSocket({ port: daemon.port, token: daemon.token, via: client % 2 === 0 ? 'query' : 'header' });
    await Promise.all(
      [0, 1, 2].map((lane) =>
        repeat(async () => {
          // Lanes 1 and 2 share a conversation: order and exactly-once must hold while turns queue.
          const key = `r1:ws-${client}:${round}-${Math.min(lane, 1)}`;
          const operation = begin('ws', client, key);
          checkTurn(operation, await socket.call('agent.execute', { message: askWith(operation.nonce), sessionKey: key }));
        }),
      ),
    );
    socket.close();
  };
  const completions = (client: number, stream: boolean) =>
    repeat(async () => {
      const operation = begin(stream ? 'v1-stream' : 'v1', client);
      const body = { model: 'local/test-model', messages: [{ role: 'user', content: askWith(operation.nonce) }], stream };
      let text = '';
      // A stream is acknowledged by [DONE], even if the connection breaks right after it.
      const onData = (piece: string) => {
        if (!stream) return;
        text += piece;
        if (!text.includes('data: [DONE]')) return;
        operation.receipt = /"id":"(chatcmpl-[^"]+)"/.exec(text)?.[1] ?? '';
        acknowledge(operation);
      };
      const reply = await http({
        port: daemon.port,
        path: '/v1/chat/completions',
        headers: bearer(daemon.token),
        body,
        agent,
        signal: stop.signal,
        onData,
      });
      if (reply.status !== 200) throw new Error(`/v1: HTTP ${reply.status} ${reply.text.slice(0, 200)}`);
      if (stream) {
        if (!operation.acked) throw new Error(`/v1: the stream ended without [DONE]: ${reply.text.slice(-200)}`);
        return;
      }
      const completion = Completion.parse(JSON.parse(reply.text));
      if (completion.choices[0].message.content !== answerTo(operation.nonce)) throw new Error(`${operation.nonce}: ${reply.text.slice(0, 300)}`);
      operation.receipt = completion.id;
      acknowledge(operation);
    });
  const tokens = (client: number) =>
    repeat(async () => {
      const operation = begin('token', client);
      operation.receipt = Created.parse(
        await rpcCall(target, 'tokens.create', { id: operation.nonce, scopes: ['rpc'] }, { signal: stop.signal }),
      ).secret;
      acknowledge(operation);
      await pause(5);
    });
  const agents = (client: number) =>
    repeat(async () => {
      const operation = begin('agent', client);
      await rpcCall(
        target,
        'agents.create',
        { agentId: operation.nonce, config: { name: operation.nonce, model: 'local/test-model' } },
        { signal: stop.signal },
      );
      acknowledge(operation);
      await pause(5);
    });

  const hooks = (client: number) =>
    repeat(async () => {
      const operation = begin('hook', client);
      // Some share a conversation, so that turns wait for one another when the kill comes.
      const body = JSON.stringify({ text: askWith(operation.nonce), key: `${round}-${operations.length % 3}` });
      const headers = { 'x-webhook-signature': createHmac('sha256', hookSecret).update(body).digest('hex') };
      const reply = await http({ port: daemon.port, path: '/hooks/r1', headers, body, agent, signal: stop.signal });
      if (reply.status !== 200) throw new Error(`/hooks: HTTP ${reply.status} ${reply.text.slice(0, 200)}`);
      acknowledge(operation);
      await pause(5);
    });

  const work = Promise.all(
    [rpcTurns(0), rpcTurns(1), socketTurns(2), socketTurns(3), completions(4, false), completions(5, true), tokens(6), agents(7), hooks(8)].map(
      (client) => client.catch((error: unknown) => void (killed || unexpected.push(`round ${round}: ${String(error)}`))),
    ),
  );
  await (killAt === 'first ack' ? Promise.race([firstAck.promise, work]) : pause(killAt));
  // From here on the kill explains a broken call. Answers that the kernel already holds still count as received.
  killed = true;
  await daemon.kill();
  const patience = setTimeout(() => stop.abort(), 2_000);
  await work;
  clearTimeout(patience);
  agent.destroy();
  return operations;
}

interface Findings {
  readonly lost: string[];
  readonly doubled: string[];
  readonly torn: string[];
}

async function verify(daemon: Daemon, operations: readonly Operation[], found: Findings): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const target = { port: daemon.port, token: daemon.token, agent };
  await verifyConversations(
    target,
    operations.filter((operation) => operation.sessionKey !== undefined),
    found,
  );
  await verifyCompletions(
    target,
    operations.filter((operation) => operation.kind === 'v1' || operation.kind === 'v1-stream'),
    found,
  );
  await verifyHooks(
    target,
    operations.filter((operation) => operation.kind === 'hook'),
    found,
  );
  const ids = Tokens.parse(await rpcCall(target, 'tokens.list', {})).tokens.map((token) => token.id);
  const agentIds = Agents.parse(await rpcCall(target, 'agents.list', {})).agents;
  const tokenCount = countOf(ids);
  const agentCount = countOf(agentIds);
  for (const operation of operations) {
    if (operation.kind !== 'token' && operation.kind !== 'agent') continue;
    const count = (operation.kind === 'token' ? tokenCount : agentCount).get(operation.nonce) ?? 0;
    if (count > 1) found.doubled.push(`${operation.kind} ${operation.nonce}: listed ${count} times`);
    if (!operation.acked) continue;
    if (count === 0) found.lost.push(`${operation.kind} ${operation.nonce}: not listed`);
    else if (operation.kind === 'agent')
      await rpcCall(target, 'agents.get', { agentId: operation.nonce }).catch((error: unknown) =>
        found.lost.push(`agent ${operation.nonce}: ${String(error)}`),
      );
    else
      await rpcCall({ ...target, token: operation.receipt ?? '' }, 'system.ping', {}).catch((error: unknown) =>
        found.lost.push(`token ${operation.nonce}: its secret opens nothing: ${String(error)}`),
      );
  }
  agent.destroy();
}

type Target = Parameters<typeof rpcCall>[0];

async function verifyConversations(target: Target, operations: readonly Operation[], found: Findings): Promise<void> {
  const byKey = Map.groupBy(operations, (operation) => operation.sessionKey ?? '');
  for (const [sessionKey, turns] of byKey) {
    const messages = await readHistory(target, { sessionKey });
    messages.forEach((message, index) => message.seq !== index + 1 && found.torn.push(`${sessionKey}: message ${index + 1} has seq ${message.seq}`));
    const contents = countOf(messages.map((message) => `${message.role} ${message.content}`));
    for (const { nonce, acked, kind } of turns) {
      const asked = contents.get(`user ${askWith(nonce)}`) ?? 0;
      const answered = contents.get(`assistant ${answerTo(nonce)}`) ?? 0;
      if (asked > 1 || answered > 1) found.doubled.push(`${kind} ${nonce}: question ${asked} times, answer ${answered} times`);
      if (asked !== answered) found.torn.push(`${kind} ${nonce}: question ${asked} times, answer ${answered} times`);
      if (acked && (asked === 0 || answered === 0)) found.lost.push(`${kind} ${nonce}: question ${asked} times, answer ${answered} times`);
    }
  }
}

/** How long the turns of webhooks may take that a killed daemon left behind. */
const hookTurnsMs = 30_000;

/** Each webhook that was answered is a delivery whose turn has run, once, also when the kill came between the two. */
async function verifyHooks(target: Target, operations: readonly Operation[], found: Findings): Promise<void> {
  if (operations.length === 0) return;
  const until = performance.now() + hookTurnsMs;
  let deliveries = await listDeliveries(target);
  while (deliveries.some(({ state }) => state === 'accepted' || state === 'running') && performance.now() < until) {
    await pause(100);
    deliveries = await listDeliveries(target);
  }
  const refs = new Set(deliveries.map(({ conversationRef }) => conversationRef));
  const histories = await Promise.all([...refs].map((conversationRef) => readHistory(target, { conversationRef })));
  const contents = histories.flat();
  for (const { nonce, acked } of operations) {
    const own = deliveries.filter(({ message }) => message === askWith(nonce));
    const asked = contents.filter(({ role, content }) => role === 'user' && content.includes(`${askWith(nonce)}\n`)).length;
    const answered = contents.filter(({ role, content }) => role === 'assistant' && content === answerTo(nonce)).length;
    const line = `hook ${nonce}: ${own.length} deliveries (${own.map(({ state }) => state).join()}), question ${asked} times, answer ${answered} times`;
    if (own.length > 1 || asked > 1 || answered > 1) found.doubled.push(line);
    if (asked !== answered) found.torn.push(line);
    if (acked && (own[0]?.state !== 'done' || asked === 0 || answered === 0)) found.lost.push(line);
  }
}

async function listDeliveries(target: Target) {
  const rows: z.output<typeof Deliveries>['deliveries'] = [];
  for (;;) {
    const before = rows.at(-1)?.deliveryId;
    const page = Deliveries.parse(await rpcCall(target, 'webhooks.deliveries', { limit: 200, ...(before !== undefined && { before }) }));
    rows.push(...page.deliveries);
    if (!page.hasMore) return rows;
  }
}

async function readHistory(target: Target, address: { readonly sessionKey: string } | { readonly conversationRef: string }) {
  const messages: z.output<typeof History>['messages'] = [];
  try {
    for (;;) {
      const page = History.parse(await rpcCall(target, 'session.history', { ...address, offset: messages.length, limit: 200 }));
      messages.push(...page.messages);
      if (messages.length >= page.total || page.messages.length === 0) return messages;
    }
  } catch (error) {
    if (error instanceof RpcFailure && error.code === -32001) return messages;
    throw error;
  }
}

/** A completion leaves a turn row and its usage: listed by kind, once, with the tokens that the provider reported. */
async function verifyCompletions(target: Target, operations: readonly Operation[], found: Findings): Promise<void> {
  const rows = await listCompletions(target);
  const byKey = Map.groupBy(rows, (row) => row.sessionKey);
  for (const { kind, nonce, acked, receipt } of operations) {
    if (!acked) continue;
    const stored = byKey.get(`compat-api:compat:${receipt}`) ?? [];
    if (stored.length === 0) found.lost.push(`${kind} ${nonce} (${receipt}): no usage row`);
    if (stored.length > 1) found.doubled.push(`${kind} ${nonce} (${receipt}): ${stored.length} usage rows`);
    if (stored.some((row) => row.totalTokens !== tokensPerTurn))
      found.torn.push(`${kind} ${nonce} (${receipt}): ${stored[0]?.totalTokens} tokens booked instead of ${tokensPerTurn}`);
  }
}

async function listCompletions(target: Target) {
  const rows: z.output<typeof Sessions>['sessions'] = [];
  for (;;) {
    const page = Sessions.parse(await rpcCall(target, 'session.list', { kind: 'v1', offset: rows.length, limit: 200 }));
    rows.push(...page.sessions);
    if (!page.hasMore || page.sessions.length === 0) return rows;
  }
}

/** Every stored turn has one booked model call. Calls of turns that a kill interrupted are booked too, but none that the provider did not answer. */
async function verifyUsage(daemon: Daemon, served: number, found: Findings): Promise<void> {
  const target = { port: daemon.port, token: daemon.token };
  let tokens = (await listCompletions(target)).reduce((sum, row) => sum + row.totalTokens, 0);
  for (let offset = 0; ; offset += 200) {
    const page = Sessions.parse(await rpcCall(target, 'session.list', { offset, limit: 200 }));
    tokens += page.sessions.reduce((sum, row) => sum + row.totalTokens, 0);
    if (!page.hasMore) break;
  }
  const calls = CacheStats.parse(await rpcCall(target, 'agent.cacheStats', {})).providers.reduce((sum, row) => sum + row.callCount, 0);
  if (calls * tokensPerTurn < tokens || calls > served || tokens % tokensPerTurn !== 0)
    found.torn.push(`${calls} model calls of ${served} are booked, the turns hold ${tokens} tokens, that is ${tokens / tokensPerTurn} calls`);
}

function countOf(items: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
}
