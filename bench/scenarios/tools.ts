import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import { runHttpLoad } from '../lib/client.ts';
import type { Measures } from '../lib/measures.ts';
import { clientCpu, cpuUs, start, type Running } from '../lib/proc.ts';
import { callRpc } from '../lib/rpc.ts';
import { product, type ProductOptions, type Target } from '../lib/targets.ts';

/** Cost of the turns of a case, by round: microseconds of CPU of the server, all threads. */
export type ToolSamples = Map<string, number[]>;

const offered = 180;
const oneCall = 'mock-calls-1-ls';
const fiftyCalls = 'mock-calls-50-ls';
const plain = { model: 'mock/mock-fast', maxConcurrentRuns: 1000, memory: { recall: { enabled: false } } };
const tools = (more: object): object => ({ profile: 'full', ...more });
/** Agents that differ in their tools and in the calls that the model makes. */
const agents = {
  bare: { ...plain, tools: { profile: 'none' } },
  some: { ...plain, tools: tools({ deny: ['mcp__*'] }) },
  many: { ...plain, tools: tools({ discovery: { mode: 'never' } }) },
  found: { ...plain, tools: tools({ discovery: { mode: 'always' } }) },
  one: { ...plain, model: `mock/${oneCall}`, tools: tools({ deny: ['mcp__*'] }) },
  fifty: { ...plain, model: `mock/${fiftyCalls}`, tools: tools({ deny: ['mcp__*'] }) },
} as const;
const cases: readonly { readonly name: string; readonly agent: keyof typeof agents }[] = [
  { name: '0 tools', agent: 'bare' },
  { name: 'built-in tools', agent: 'some' },
  { name: `built-in tools and ${offered} of a server`, agent: 'many' },
  { name: `built-in tools and ${offered} to be discovered`, agent: 'found' },
  { name: '1 tool call', agent: 'one' },
  { name: '50 tool calls', agent: 'fifty' },
];

const skill = (n: number): string =>
  `---\nname: shelf-${n}\ndescription: How to look for a part on shelf ${n} of the store.\n---\nLook at the label of the shelf first.\n`;

export interface ToolOptions {
  readonly upstreamUrl: string;
  readonly rounds: number;
  /** Turns of a case in a round. */
  readonly turns: number;
  readonly settleMs: number;
  readonly product?: ProductOptions;
}

/** Measures a turn with no, some and many tools, with one and fifty calls, and with skills and an MCP server that it does not use. */
export async function runTools({ upstreamUrl, rounds, turns, settleMs, product: more }: ToolOptions, measures: Measures): Promise<ToolSamples> {
  await using stack = new AsyncDisposableStack();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = await start({
    args: [join(import.meta.dirname, '..', 'reference', 'many-tools.ts')],
    env: { PORT: String(port), TOOLS: String(offered) },
    healthUrl: `${url}/health`,
    cpu: clientCpu,
  });
  stack.defer(server.stop);
  const up = async (options: ProductOptions): Promise<Target> => {
    const subject = await product(upstreamUrl, { agents, models: [oneCall, fiftyCalls], ...options });
    if (subject === undefined) throw new Error('the product is not built');
    stack.defer(subject.dispose);
    const running: Running = await subject.start();
    stack.defer(running.stop);
    return subject.target(running);
  };
  const equipped = await up({
    sections: { mcp: { servers: { store: { transport: 'http', url: `${url}/mcp`, allowPrivate: true } } } },
    files: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`skills/shelf-${n}/SKILL.md`, skill(n)])),
    ...more,
  });
  const empty = await up({});
  await connected(equipped);
  await sleep(settleMs);
  const all = [
    ...cases.map((one) => ({ ...one, target: equipped })),
    { name: '0 tools, no server and no skills', agent: 'bare' as const, target: empty },
  ];
  const samples: ToolSamples = new Map();
  for (let round = -1; round < rounds; round += 1)
    for (const { name, agent, target } of round % 2 === 0 ? all : all.toReversed()) {
      const asked = agent === 'fifty' ? Math.ceil(turns / 5) : turns;
      // Both servers have to be equally warm.
      const cpu = await cost(target, agent, round < 0 && target === empty ? asked * cases.length : asked);
      if (round >= 0) samples.set(name, [...(samples.get(name) ?? []), cpu]);
    }
  const of = (name: string): readonly number[] => samples.get(name) ?? [];
  const [bare = '', some = '', many = '', found = '', one = '', fifty = ''] = cases.map(({ name }) => name);
  const ratio = (measure: string, over: string, under: string): void =>
    measures.add(measure, ...of(over).map((cpu, round) => cpu / (of(under)[round] ?? NaN)));
  ratio('tools unused', bare, '0 tools, no server and no skills');
  ratio('tools some/none', some, bare);
  ratio('tools many/none', many, bare);
  ratio('tools found/none', found, bare);
  measures.add('tools per call', ...of(fifty).map((cpu, round) => (cpu - (of(one)[round] ?? NaN)) / 49));
  return samples;
}

async function connected(target: Target): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if (JSON.stringify(await callRpc(target, 'mcp.list')).includes(`"toolCount":${offered}`)) return;
    await sleep(50);
  }
  throw new Error('the MCP server was not connected');
}

let conversations = 0;

async function cost(target: Target, agentId: string, turns: number): Promise<number> {
  if (target.pid === undefined) throw new Error(`${target.name} has no process`);
  const bodies = Array.from({ length: turns }, () => ({
    agentId,
    sessionKey: `turn-${(conversations += 1)}:bench`,
    message: 'Which parts are left?',
  }));
  const before = cpuUs(target.pid);
  const load = { url: `${target.url}/api/chat`, headers: target.headers, body: undefined, bodies, connections: 8, stream: false };
  const { good, errors } = await runHttpLoad({ ...load, requests: turns, ms: 60_000 });
  if (good !== turns) throw new Error(`${agentId}: ${good} of ${turns} turns were answered: ${JSON.stringify(errors)}`);
  return (cpuUs(target.pid) - before) / turns;
}
