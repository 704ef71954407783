// What keeping traces costs: processor time of the built daemon per turn with and without them, in alternating blocks on one daemon. "Meanwhile"
// ends with the last answer; "in all" also has what is written when no turn runs any more.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runHttpLoad } from '../lib/client.ts';
import { cpuUs } from '../lib/proc.ts';
import { callRpc } from '../lib/rpc.ts';
import { median } from '../lib/stats.ts';
import { product, startUpstream, type Target } from '../lib/targets.ts';

/** Time in which everything of a block is written. */
const settleMs = 2_500;

interface Cost {
  readonly meanwhile: number;
  readonly inAll: number;
}

const question = 'Which tea shall I buy?';
let conversations = 0;
const completion = (target: Target) => ({ model: target.model('mock-fast'), messages: [{ role: 'user', content: question }] });
/** Requests by name: turns without a stored conversation, whole and as a stream of 100 deltas, and those in a separate conversation each. */
const requests = {
  'whole answer': { path: '/v1/chat/completions', stream: false, bodies: (target: Target) => [completion(target)] },
  stream: { path: '/v1/chat/completions', stream: true, bodies: (target: Target) => [{ ...completion(target), stream: true }] },
  conversation: {
    path: '/api/chat',
    stream: false,
    bodies: (_target: Target, turns: number) =>
      Array.from({ length: turns }, () => ({ message: question, sessionKey: `bench:${(conversations += 1)}` })),
  },
};
type RequestName = keyof typeof requests;

async function measureBlock(target: Target, name: RequestName, isOn: boolean, turns: number): Promise<Cost> {
  await callRpc(target, 'config.patch', { path: 'observability.persistence.enabled', value: isOn, confirm: true });
  await sleep(300);
  const pid = target.pid ?? 0;
  const { path, stream, bodies } = requests[name];
  const load = { url: `${target.url}${path}`, headers: target.headers, body: undefined, bodies: bodies(target, turns), stream };
  const before = cpuUs(pid);
  const { good } = await runHttpLoad({ ...load, connections: 16, requests: turns, ms: 60_000 });
  const meanwhile = cpuUs(pid) - before;
  await sleep(settleMs);
  return { meanwhile: meanwhile / good, inAll: (cpuUs(pid) - before) / good };
}

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '21' }, turns: { type: 'string', default: '4000' } } });
await using stack = new AsyncDisposableStack();
const upstream = await startUpstream();
stack.defer(upstream.stop);
const subject = await product(upstream.url);
if (subject === undefined) throw new Error('the product is not built: npm run build');
stack.defer(() => subject.dispose());
const running = await subject.start();
stack.defer(running.stop);
const target = subject.target(running);
for (const name of ['whole answer', 'stream', 'conversation'] as const) {
  const rounds: { readonly on: Cost; readonly off: Cost }[] = [];
  for (let round = -2; round < Number(values.rounds); round += 1) {
    const isOnFirst = round % 2 === 0;
    const first = await measureBlock(target, name, isOnFirst, Number(values.turns));
    const second = await measureBlock(target, name, !isOnFirst, Number(values.turns));
    if (round >= 0) rounds.push(isOnFirst ? { on: first, off: second } : { on: second, off: first });
  }
  for (const figure of ['meanwhile', 'inAll'] as const) {
    const of = (which: 'on' | 'off') => median(rounds.map((round) => round[which][figure])).toFixed(0);
    const ratios = rounds.map(({ on, off }) => on[figure] / off[figure]);
    console.log(`${name}, ${figure}: CPU µs per turn off ${of('off')}, on ${of('on')}, ratio ${median(ratios).toFixed(3)}`);
    console.log(`  ${ratios.map((ratio) => ratio.toFixed(2)).join(' ')}`);
  }
}
