import { setTimeout as sleep } from 'node:timers/promises';
import { runHttpLoad } from '../lib/client.ts';
import { listenTo } from '../lib/crowd.ts';
import { startHolder, type Holder } from '../lib/holder.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs } from '../lib/proc.ts';
import { callRpc } from '../lib/rpc.ts';
import { product, startReference, type ProductOptions, type Target, type Upstream } from '../lib/targets.ts';

/** CPU of the server, microseconds. */
export interface GraphSample {
  /** CPU of one node of a graph of twenty, including the work of the graph itself. */
  readonly perNode: number;
  /** CPU of one turn by `agent.execute`, as many at a time as nodes run, and one at a time. */
  readonly perTurn: number;
  readonly perLoneTurn: number;
  /** CPU of one bare model call of R. */
  readonly perCall: number;
}

export interface GraphOptions {
  readonly upstream: Upstream;
  readonly rounds: number;
  /** Graphs of a round, one after the other; turns are as many as their nodes. */
  readonly graphs: number;
  /** How long requests are sent to R. */
  readonly ms: number;
  readonly settleMs: number;
  readonly product?: ProductOptions;
}

export const nodesOfGraph = 20;
/** Nodes of one graph that run at once by default, and turns at a time in the comparison. */
const width = 4;
/** Time for the work that a graph leaves after its end is announced. */
const afterMs = 600;

/** Five layers of four nodes, each of which reads the output of two of the layer before. */
const nodes = Array.from({ length: nodesOfGraph }, (_, n) => {
  const first = (Math.floor(n / width) - 1) * width;
  return {
    node_id: `part-${n}`,
    task: `Look at part ${n} of the store and say what is left of it.`,
    agent: 'default',
    ...(first >= 0 && { depends_on: [`part-${first + (n % width)}`, `part-${first + ((n + 1) % width)}`] }),
  };
});

/** Compares graphs with as many plain turns, without the model calls that both make. */
export async function runGraphs(options: GraphOptions, measures: Measures): Promise<GraphSample[]> {
  const { upstream, rounds, graphs, ms } = options;
  await using stack = new AsyncDisposableStack();
  const { target: r, running: ofR } = await startReference({ name: 'R', file: 'raw-http.ts', upstreamUrl: upstream.url });
  stack.defer(ofR.stop);
  const subject = await product(upstream.url, options.product);
  if (subject === undefined) throw new Error('the product is not built');
  stack.defer(subject.dispose);
  const running = await subject.start();
  stack.defer(running.stop);
  const holder = startHolder();
  stack.defer(holder.stop);
  const target = subject.target(running);
  await listenTo(holder, target, 'graph:completed');
  await sleep(options.settleMs);
  const figures = { graphs: [] as number[], turns: [] as number[], lone: [] as number[], calls: [] as number[] };
  const calls = graphs * nodesOfGraph;
  for (let round = -1; round < rounds; round += 1) {
    const loads = [
      async () => figures.graphs.push(await costOf(target, upstream, calls, () => graphsOneByOne(target, holder, graphs))),
      async () => figures.turns.push(await costOf(target, upstream, calls, () => plainTurns(target, calls, width))),
      async () => figures.lone.push(await costOf(target, upstream, calls, () => plainTurns(target, calls, 1))),
      async () => figures.calls.push(await costOfR(r, ms)),
    ];
    for (const load of round % 2 === 0 ? loads : loads.toReversed()) await load();
  }
  // The first of each was to warm up.
  const samples = figures.graphs.slice(1).map((perNode, round) => ({
    perNode,
    perTurn: figures.turns[round + 1] ?? NaN,
    perLoneTurn: figures.lone[round + 1] ?? NaN,
    perCall: figures.calls[round + 1] ?? NaN,
  }));
  measures.add('graphs beyond/turns', ...samples.map(({ perNode, perTurn, perCall }) => (perNode - perCall) / perTurn));
  measures.add('graphs beyond/lone turns', ...samples.map(({ perNode, perLoneTurn, perCall }) => (perNode - perCall) / perLoneTurn));
  return samples;
}

/** Returns the CPU for each model call, when exactly `calls` were made. */
async function costOf(target: Target, upstream: Upstream, calls: number, run: () => Promise<void>): Promise<number> {
  if (target.pid === undefined) throw new Error(`${target.name} has no process`);
  const served = await upstream.served();
  const before = cpuUs(target.pid);
  await run();
  await sleep(afterMs);
  const cpu = cpuUs(target.pid) - before;
  const made = (await upstream.served()) - served - 1;
  if (made !== calls) throw new Error(`${made} model calls were made instead of ${calls}`);
  return cpu / calls;
}

async function graphsOneByOne(target: Target, holder: Holder, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const { marks } = await holder.state();
    const { graphId } = await callRpc(target, 'graph.execute', { nodes, label: `Store ${n}` });
    for (let tries = 0; (await holder.state()).marks === marks; tries += 1) {
      if (tries > 3_000) throw new Error(`${String(graphId)} did not end`);
      await sleep(10);
    }
  }
}

let turns = 0;

async function plainTurns(target: Target, count: number, connections: number): Promise<void> {
  const bodies = Array.from({ length: count }, (_, n) => {
    const params = {
      agentId: 'default',
      message: `Look at part ${n} of the store and say what is left of it.`,
      sessionKey: `turn-${(turns += 1)}:bench`,
    };
    return { jsonrpc: '2.0', id: n, method: 'agent.execute', params };
  });
  const load = { url: `${target.url}/rpc`, headers: target.headers, body: undefined, bodies, connections, stream: false };
  const { good, errors } = await runHttpLoad({ ...load, requests: count, ms: 60_000 });
  if (good !== count) throw new Error(`${good} of ${count} turns were answered: ${JSON.stringify(errors)}`);
}

async function costOfR(r: Target, ms: number): Promise<number> {
  if (r.pid === undefined) throw new Error(`${r.name} has no process`);
  const body = { model: r.model('mock-fast'), messages: [{ role: 'user', content: 'Say something about gateways.' }] };
  const before = cpuUs(r.pid);
  const { good } = await runHttpLoad({ url: `${r.url}/v1/chat/completions`, headers: r.headers, body, connections: width, ms, stream: false });
  return (cpuUs(r.pid) - before) / good;
}
