// What keeping traces costs: processor time of the built daemon per turn with and without them, in alternating pairs of blocks on one daemon.
// "Meanwhile" ends with the last answer; "in all" also has what is written behind the turns.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runHttpLoad } from '../lib/client.ts';
import { cpuUs } from '../lib/proc.ts';
import { callRpc } from '../lib/rpc.ts';
import { median } from '../lib/stats.ts';
import { product, startUpstream, type Target } from '../lib/targets.ts';

/** After a change of the configuration, until what follows from it has run. */
const settleMs = 250;

interface Cost {
  readonly meanwhile: number;
  readonly inAll: number;
}

const question = 'Which tea shall I buy?';
/** Turns of one conversation, one after the other. */
const turnsOfOne = 5;
let blocks = 0;
const completion = (target: Target) => ({ model: target.model('mock-fast'), messages: [{ role: 'user', content: question }] });
function inConversations(agentId: string, turns: number): object[] {
  const conversations = Math.ceil(turns / turnsOfOne);
  blocks += 1;
  return Array.from({ length: turns }, (_, turn) => ({ agentId, message: question, sessionKey: `bench:${blocks}-${turn % conversations}` }));
}
const oneCall = 'mock-calls-1-ls';

interface Requests {
  readonly path: string;
  readonly stream: boolean;
  readonly connections: number;
  /** Part of the turns of a block: a paced stream takes a second. */
  readonly share: number;
  bodies(target: Target, turns: number): readonly object[];
}

const immediate = { stream: false, connections: 16, share: 1 };
/** Requests by name, `conversation` and `tool` in conversations of five turns each. Answers are immediate, except for those of `paced`, which arrive as those of a real model do: a delta each 10 ms. */
const requests: Readonly<Record<string, Requests>> = {
  whole: { ...immediate, path: '/v1/chat/completions', bodies: (target) => [completion(target)] },
  stream: { ...immediate, path: '/v1/chat/completions', stream: true, bodies: (target) => [{ ...completion(target), stream: true }] },
  conversation: { ...immediate, path: '/api/chat', bodies: (_target, turns) => inConversations('default', turns) },
  tool: { ...immediate, path: '/api/chat', share: 0.5, bodies: (_target, turns) => inConversations('one', turns) },
  paced: {
    path: '/v1/chat/completions',
    stream: true,
    connections: 40,
    share: 0.12,
    bodies: (target) => [{ ...completion(target), model: target.model('mock-p10'), stream: true }],
  },
};
const names = Object.keys(requests);

/** A reader waits until everything that was recorded is a row. */
async function storeAll(target: Target): Promise<void> {
  await callRpc(target, 'obs.trace.search', { traceId: '0'.repeat(32) });
}

async function measureBlock(target: Target, asked: Requests, isOn: boolean, turns: number): Promise<Cost> {
  await callRpc(target, 'config.patch', { path: 'observability.persistence.enabled', value: isOn, confirm: true });
  await sleep(settleMs);
  const pid = target.pid ?? 0;
  const { path, stream, connections } = asked;
  const load = { url: `${target.url}${path}`, headers: target.headers, body: undefined, bodies: asked.bodies(target, turns), stream, connections };
  const before = cpuUs(pid);
  const { good } = await runHttpLoad({ ...load, requests: turns, ms: 60_000 });
  const meanwhile = cpuUs(pid) - before;
  await storeAll(target);
  return { meanwhile: meanwhile / good, inAll: (cpuUs(pid) - before) / good };
}

/** Bounds between which the median of the whole population is with a probability of 95 %, by the ranks of the samples. */
function boundsOfMedian(samples: readonly number[]): string {
  const sorted = samples.toSorted((a, b) => a - b);
  const off = Math.ceil(0.98 * Math.sqrt(sorted.length));
  const at = (rank: number) => (sorted[Math.min(sorted.length - 1, Math.max(0, rank))] ?? Number.NaN).toFixed(3);
  return `${at(Math.floor(sorted.length / 2) - off)} to ${at(Math.ceil(sorted.length / 2) - 1 + off)}`;
}

const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '40' },
    turns: { type: 'string', default: '1000' },
    only: { type: 'string', default: names.join(',') },
    profile: { type: 'string' },
  },
});
await using stack = new AsyncDisposableStack();
const upstream = await startUpstream();
stack.defer(upstream.stop);
const nodeArgs = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`];
const agents = { one: { model: `mock/${oneCall}`, maxConcurrentRuns: 1000 } };
const subject = await product(upstream.url, { nodeArgs, agents, models: [oneCall] });
if (subject === undefined) throw new Error('the product is not built: npm run build');
stack.defer(() => subject.dispose());
const running = await subject.start();
stack.defer(running.stop);
const target = subject.target(running);
for (const [name, asked] of Object.entries(requests).filter(([one]) => values.only.split(',').includes(one))) {
  const turns = Math.round(Number(values.turns) * asked.share);
  const rounds: { readonly on: Cost; readonly off: Cost }[] = [];
  // The first rounds compile what runs.
  for (let round = -4; round < Number(values.pairs); round += 1) {
    const isOnFirst = round % 2 === 0;
    const first = await measureBlock(target, asked, isOnFirst, turns);
    const second = await measureBlock(target, asked, !isOnFirst, turns);
    if (round >= 0) rounds.push(isOnFirst ? { on: first, off: second } : { on: second, off: first });
  }
  for (const figure of ['meanwhile', 'inAll'] as const) {
    const of = (which: 'on' | 'off') => median(rounds.map((round) => round[which][figure])).toFixed(0);
    const ratios = rounds.map(({ on, off }) => on[figure] / off[figure]);
    const more = median(rounds.map(({ on, off }) => on[figure] - off[figure])).toFixed(0);
    console.log(
      `${name}, ${figure}: CPU µs per turn off ${of('off')}, on ${of('on')}, more ${more}, ratio ${median(ratios).toFixed(3)} (${boundsOfMedian(ratios)})`,
    );
  }
}
