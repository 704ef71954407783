import * as z from 'zod';
import { pause } from './lib/daemon.ts';
import { http } from './lib/http.ts';
import { type Node, type Nodes, openNodes } from './lib/nodes.ts';
import { askWith, nonceOf, proofConfig, startReviewingProvider } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/** Work of each round. */
export interface TakeoverLoad {
  readonly turns: number;
  /** Webhooks: durable work items. */
  readonly items: number;
  readonly graphs: number;
  /** Jobs that come due around the kill. */
  readonly jobs: number;
}

export interface TakeoverKilledOptions {
  readonly rounds: number;
  readonly load: TakeoverLoad;
  readonly seed: number;
  /** Time within which the standby must be at work, for a machine that does nothing else. */
  readonly withinMs?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface TakeoverKilledReport {
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
  /** Longest time from a kill until the standby was ready. */
  readonly slowestMs: number;
  readonly wrong: readonly string[];
}

const Logging = z.object({ config: z.object({ modules: z.record(z.string(), z.string()) }) });

/** The daemon is killed within this time after the first acknowledgement. */
const killWithinMs = 2_500;
const providerMs = 300;
const quietMs = 90_000;

type Kind = keyof TakeoverLoad;
interface Work {
  readonly kind: Kind;
  readonly nonce: string;
  /** Why it must be done: it was accepted, or for a turn, answered. */
  acknowledged: boolean;
}

/**
 * Two daemons on one PostgreSQL: the active one is killed under turns, work items, graphs and due jobs; the standby takes over, and
 * continues everything that was acknowledged, once, with the configuration that the active one had. The killed one becomes the next standby.
 */
export async function proveTakeoverKilled({
  rounds,
  load,
  seed,
  withinMs = Infinity,
  broken,
  progress,
}: TakeoverKilledOptions): Promise<TakeoverKilledReport> {
  const random = randomFrom(seed);
  const provider = await startReviewingProvider({ delayMs: providerMs });
  await using nodes = await openNodes(
    {
      ...proofConfig(provider.url),
      webhooks: { mappings: [{ id: 'item', sessionKey: '{{nonce}}', messageTemplate: askWith('{{nonce}}'), allowUnauthenticated: true }] },
    },
    { broken },
  );
  const wrong: string[] = [];
  const all: Work[] = [];
  let slowestMs = 0;
  let [active, standby]: [0 | 1, 0 | 1] = [0, 1];
  let doomed = await nodes.start(active);
  await nodes.ready(doomed);
  for (let round = 0; round < rounds; round += 1) {
    const next = await nodes.start(standby);
    await nodes.standsBy(next);
    await rpcCall(doomed, 'config.set', { path: `logging.modules.round${round}`, value: 'debug' });
    const works = await killUnder(doomed, load, nonceOf([seed, round]), random);
    all.push(...works);
    const killedAt = performance.now();
    await nodes.ready(next);
    const tookMs = performance.now() - killedAt;
    slowestMs = Math.max(slowestMs, tookMs);
    if (tookMs > withinMs) wrong.push(`round ${round}: the standby was ready after ${Math.round(tookMs)} ms`);
    // In the time of the database.
    const [times] = await nodes.query<{ late: boolean }>(
      'SELECT a.since_ms >= max(n.lease_until_ms) AS late FROM active_node a, node n WHERE n.boot_id <> a.boot_id GROUP BY a.since_ms',
    );
    if (times?.late !== true) wrong.push(`round ${round}: the standby took over before the lease had ended`);
    const { modules } = Logging.parse(await rpcCall(next, 'config.read', { section: 'logging' })).config;
    for (let earlier = 0; earlier <= round; earlier += 1)
      if (modules[`round${earlier}`] !== 'debug') wrong.push(`round ${round}: the configuration of round ${earlier} is not in force`);
    await settled(nodes, works);
    wrong.push(...(await faultsOf(nodes, next, works)).map((fault) => `round ${round}: ${fault}`));
    progress?.(
      `take-over ${round + 1}/${rounds}: ready after ${Math.round(tookMs)} ms, ${works.filter(({ acknowledged }) => acknowledged).length} acknowledged, ${wrong.length} wrong`,
    );
    doomed = next;
    [active, standby] = [standby, active];
  }
  // No later take-over may undo what an earlier check has seen.
  const counts = await countAnswers(nodes);
  const lost = all.filter(({ kind, nonce, acknowledged }) => acknowledged && (counts.get(nonce) ?? 0) < countExpected(kind)).length;
  const doubled = all.filter(({ kind, nonce }) => (counts.get(nonce) ?? 0) > countExpected(kind)).length;
  await provider.close();
  return { acknowledged: all.filter(({ acknowledged }) => acknowledged).length, lost, doubled, slowestMs: Math.round(slowestMs), wrong };
}

/** Starts the work of a round, kills the daemon at a random moment, and returns what was acknowledged by then. */
async function killUnder(daemon: Node, load: TakeoverLoad, prefix: string, random: Random): Promise<Work[]> {
  const base = prefix.slice(0, -'-end'.length);
  const works: Work[] = [];
  const stop = new AbortController();
  const add = (kind: Kind, n: number, send: (nonce: string) => Promise<unknown>) => {
    const work: Work = { kind, nonce: `${base}-${kind}-${n}-end`, acknowledged: false };
    works.push(work);
    return send(work.nonce).then(
      () => (work.acknowledged = true),
      () => undefined,
    );
  };
  const call = (method: string, params: object) => rpcCall(daemon, method, params, { signal: stop.signal, timeoutMs: 30_000 });
  const sent: Promise<unknown>[] = [];
  for (let n = 0; n < load.jobs; n += 1) {
    const schedule = { kind: 'in', seconds: 1 + random.int(3) };
    sent.push(add('jobs', n, (nonce) => call('cron.add', { name: nonce, schedule, payload: { kind: 'agent_turn', message: askWith(nonce) } })));
  }
  for (let n = 0; n < load.graphs; n += 1)
    sent.push(
      add('graphs', n, (nonce) =>
        call('graph.execute', {
          label: nonce,
          nodes: [
            { node_id: 'one', task: askWith(nonce), agent: 'default' },
            { node_id: 'two', task: askWith(nonce), agent: 'default', depends_on: ['one'] },
          ],
          announceChannelType: 'gateway',
          announceChannelId: 'inbox',
        }),
      ),
    );
  for (let n = 0; n < load.turns; n += 1)
    sent.push(add('turns', n, (nonce) => call('agent.execute', { message: askWith(nonce), sessionKey: `${nonce}:proof` })));
  for (let n = 0; n < load.items; n += 1)
    sent.push(
      add('items', n, async (nonce) => {
        const { status } = await http({ port: daemon.port, path: '/hooks/item', body: { nonce }, signal: stop.signal });
        if (status !== 200) throw new Error(`status ${status}`);
      }),
    );
  await Promise.race([...sent, pause(5_000)]);
  await pause(random.int(killWithinMs));
  await daemon.kill();
  stop.abort();
  await Promise.all(sent);
  return works;
}

/** Each graph has two nodes with the same task. */
const countExpected = (kind: Kind): number => (kind === 'graphs' ? 2 : 1);

/** How often each nonce was answered, as the database has it. */
async function countAnswers(nodes: Nodes): Promise<ReadonlyMap<string, number>> {
  const rows = await nodes.query<{ content: string }>(`SELECT content FROM message WHERE role = 'assistant'`);
  const counts = new Map<string, number>();
  for (const { content } of rows) {
    const [, nonce] = /^noted (nonce-\S+-end)$/.exec(content) ?? [];
    if (nonce !== undefined) counts.set(nonce, (counts.get(nonce) ?? 0) + 1);
  }
  return counts;
}

/** Waits until nothing waits any more; the checks report what does. */
async function settled(nodes: Nodes, works: readonly Work[]): Promise<void> {
  for (const deadline = performance.now() + quietMs; performance.now() < deadline; await pause(200)) {
    const [open] = await nodes.query<{ count: string }>(
      `SELECT count(*) AS count FROM work_item WHERE state NOT IN ('done', 'failed', 'aborted', 'unknown')`,
    );
    const counts = await countAnswers(nodes);
    const isDone = ({ kind, nonce, acknowledged }: Work) => !acknowledged || (counts.get(nonce) ?? 0) >= countExpected(kind);
    if (Number(open?.count) === 0 && works.every(isDone)) return;
  }
}

const Graphs = z.looseObject({ graphs: z.array(z.looseObject({ label: z.string().optional(), status: z.string() })) });

async function faultsOf(nodes: Nodes, node: Node, works: readonly Work[]): Promise<string[]> {
  const counts = await countAnswers(nodes);
  const faults: string[] = [];
  for (const { kind, nonce, acknowledged } of works) {
    const times = counts.get(nonce) ?? 0;
    if (acknowledged && times < countExpected(kind)) faults.push(`${nonce} was acknowledged and was done ${times} times`);
    if (times > countExpected(kind)) faults.push(`${nonce} was done ${times} times`);
  }
  const { graphs } = Graphs.parse(await rpcCall(node, 'graph.status', { recentMinutes: 600 }));
  const states = new Map(graphs.map(({ label, status }) => [label, status]));
  for (const { kind, nonce, acknowledged } of works)
    if (kind === 'graphs' && acknowledged && states.get(nonce) !== 'completed') faults.push(`${nonce} is ${states.get(nonce) ?? 'lost'}`);
  return faults;
}
