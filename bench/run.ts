import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findPostgres } from '@gatehouse/testkit/postgres';
import * as z from 'zod';
import { judgeAll, readBudgets } from './lib/budgets.ts';
import { Measures } from './lib/measures.ts';
import { figureTables, noiseLine, provenance, verdictTable, type Figures } from './lib/report.ts';
import { product, reference, startReference, startUpstream, type Product, type Target } from './lib/targets.ts';
import { compareCompletions, wrongAnswers } from './scenarios/compare.ts';
import { completionNames, runCompletions, type CompletionName, type Samples } from './scenarios/completions.ts';
import { runConversations } from './scenarios/conversations.ts';
import { runCrowd } from './scenarios/crowd.ts';
import { bareEvents, productEvents, runFanout } from './scenarios/fanout.ts';
import { runGraphs } from './scenarios/graphs.ts';
import { heldKinds, runHeld } from './scenarios/held.ts';
import { historyProduct, runHistory } from './scenarios/history.ts';
import { runHooks } from './scenarios/hooks.ts';
import { runLoop } from './scenarios/loop.ts';
import { runPages } from './scenarios/pages.ts';
import { runPostgres } from './scenarios/postgres.ts';
import { runRpc } from './scenarios/rpc.ts';
import { runSchedule } from './scenarios/schedule.ts';
import { runSoak } from './scenarios/soak.ts';
import { runIdle, runStart } from './scenarios/start.ts';
import { runTools } from './scenarios/tools.ts';

const help = `npm run bench -- [--quick | --full] [--only completions,rpc,fanout,start,idle,loop,soak,store,history,conversations,memory,tools,hooks,schedule,graphs,crowd,pages,postgres] [--scenarios json16,json1] [--reference-only]

--quick           about six minutes; goals are judged with the tolerance of budgets.json (the default)
--full            about twenty minutes; writes bench/RESULTS.md
--only            some parts; nothing is written
--scenarios       some completions; nothing is written
--reference-only  without the product: F is compared with R, to see that the rig works`;

const parts = [
  'completions',
  'rpc',
  'fanout',
  'start',
  'idle',
  'loop',
  'soak',
  'store',
  'history',
  'conversations',
  'memory',
  'tools',
  'hooks',
  'schedule',
  'graphs',
  'crowd',
  'pages',
  'postgres',
] as const;
const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    only: { type: 'string' },
    scenarios: { type: 'string' },
    'reference-only': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit(0);
}
const only = z.array(z.enum(parts)).parse(values.only?.split(',') ?? parts);
const quickNames: readonly CompletionName[] = completionNames.filter((name) => name !== 'sse-fast1');
const names = z.array(z.enum(completionNames)).parse(values.scenarios?.split(',') ?? (values.full ? completionNames : quickNames));
const size = values.full
  ? { rounds: 7, scale: 1, starts: 9, idles: 3, settleMs: 3000, wsMs: 1500, held: 1000, readers: 1000, events: 60, loopMs: 6000 }
  : { rounds: 3, scale: 0.6, starts: 5, idles: 1, settleMs: 2000, wsMs: 900, held: 1000, readers: 1000, events: 30, loopMs: 3000 };
const soakSize = values.full ? { turns: 50_000, connects: 10_000, warm: 0.2 } : { turns: 4_000, connects: 800, warm: 1 };
const historySize = values.full
  ? { rounds: 7, turns: 400, long: 10_000, memories: 300, settleMs: 3_000 }
  : { rounds: 3, turns: 120, long: 10_000, memories: 100, settleMs: 1_500 };
const conversationSize = values.full ? { conversations: 10_000, calls: 300, rounds: 5 } : { conversations: 500, calls: 100, rounds: 3 };
const toolSize = values.full ? { rounds: 7, turns: 300 } : { rounds: 3, turns: 100 };
const hookSize = values.full
  ? { rounds: 7, hooks: 300, backlog: 7_500, ms: 1_500, turns: 50 }
  : { rounds: 3, hooks: 300, backlog: 8_000, ms: 1_000, turns: 50 };
const scheduleSize = values.full
  ? { starts: 9, idles: 3, idleMs: 20_000, ticks: 7, tickMs: 6_000 }
  : { starts: 3, idles: 1, idleMs: 20_000, ticks: 3, tickMs: 4_000 };
const graphSize = values.full ? { rounds: 7, graphs: 25, ms: 1_000 } : { rounds: 3, graphs: 10, ms: 600 };
const crowdSize = values.full ? { rounds: 5, delayMs: 4_000, turns: 200 } : { rounds: 2, delayMs: 3_000, turns: 100 };
const pageSize = values.full ? { rounds: 3, delayMs: 4_000 } : { rounds: 1, delayMs: 3_000 };
const postgresSize = values.full ? { rounds: 7, commits: 10_000 } : { rounds: 3, commits: 4_000 };
const root = join(import.meta.dirname, '..');
const say = (text: string): void => console.error(text);

/** Completions, RPC and events, with one server of each kind up at the same time. */
async function underLoad(
  upstreamUrl: string,
  subject: Product | undefined,
  measures: Measures,
): Promise<Pick<Figures, 'completions' | 'rpc' | 'fanout'>> {
  await using stack = new AsyncDisposableStack();
  const up = async (options: Parameters<typeof startReference>[0]): Promise<Target> => {
    const { target, running } = await startReference(options);
    stack.defer(running.stop);
    return target;
  };
  let daemon: Target | undefined;
  if (subject) {
    const running = await subject.start();
    stack.defer(running.stop);
    daemon = subject.target(running);
  }
  let samples: Samples = new Map();
  if (only.includes('completions')) {
    const targets = [
      upstream.target,
      await up({ name: 'R', file: 'raw-http.ts', upstreamUrl }),
      await up({ name: 'F', file: 'raw-http.ts', upstreamUrl, env: { FULL: '1' } }),
      ...(values.full ? [await up({ name: 'R again', file: 'raw-http.ts', upstreamUrl })] : []),
      ...(daemon ? [daemon] : []),
    ];
    const onRound = (round: number): void => say(round < 0 ? 'completions: warm' : `completions: round ${round + 1} of ${size.rounds}`);
    samples = await runCompletions({ upstream, targets, names, rounds: size.rounds, scale: size.scale, onRound });
    compareCompletions(samples, daemon ? 'product' : 'F', measures);
  }
  let rpc: Figures['rpc'] = new Map();
  if (only.includes('rpc') && daemon) {
    say('rpc');
    rpc = await runRpc({ bare: await up({ name: 'bare ws', file: 'bare-ws.ts' }), product: daemon, rounds: size.rounds, ms: size.wsMs }, measures);
  }
  let fanout: Figures['fanout'] = new Map();
  if (only.includes('fanout') && daemon) {
    say('fanout');
    const bare = bareEvents(await up({ name: 'bare events', file: 'bare-events.ts' }));
    fanout = await runFanout({ bare, product: productEvents(daemon), ...size }, measures);
  }
  return { completions: samples, rpc, fanout };
}

/** The memory's own benchmark prints `{"figures": [...]}`, of dense and of sparse vectors, in its last line. */
function runMemory(measures: Measures): void {
  say('memory');
  const entry = join(root, 'bench', 'micro', 'memory.ts');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [entry, ...(values.full ? [] : ['--entries', '20000', '--queries', '200', '--vectors', 'dense'])],
    { encoding: 'utf8', timeout: 900_000 },
  );
  if (status !== 0) throw new Error(`bench/micro/memory.ts ended with ${status}: ${stderr.slice(0, 500)}`);
  const Memory = z.looseObject({ searchP50: z.number(), searchP95: z.number(), recallAt10: z.number(), loopHeldMs: z.number() });
  const { figures } = z.looseObject({ figures: z.array(Memory).min(1) }).parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
  // Each kind of vector has to meet the goals: what counts is the worse one.
  const worst = (pick: (one: z.output<typeof Memory>) => number, of: (...all: number[]) => number): number => of(...figures.map(pick));
  measures.add(
    'memory search p50',
    worst(({ searchP50 }) => searchP50, Math.max),
  );
  measures.add(
    'memory search p95',
    worst(({ searchP95 }) => searchP95, Math.max),
  );
  measures.add(
    'memory recall@10',
    worst(({ recallAt10 }) => recallAt10, Math.min),
  );
  measures.add(
    'memory loop held',
    worst(({ loopHeldMs }) => loopHeldMs, Math.max),
  );
}

/** The store's own benchmark prints `{"ratios": [...]}`, CPU of one append over a bare insert, in its last line. */
function runStore(measures: Measures): void {
  const entry = join(root, 'bench', 'micro', 'store.ts');
  if (!existsSync(entry)) return;
  say('store');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [entry, '--rounds', values.full ? '9' : '3', '--ops', values.full ? '20000' : '8000'],
    { encoding: 'utf8', timeout: 120_000 },
  );
  if (status !== 0) throw new Error(`bench/micro/store.ts ended with ${status}: ${stderr.slice(0, 500)}`);
  const last = stdout.trim().split('\n').at(-1) ?? '';
  measures.add('store cpu/bare', ...z.looseObject({ ratios: z.array(z.number()) }).parse(JSON.parse(last)).ratios);
}

const measures = new Measures();
const upstream = await startUpstream();
const subject = values['reference-only'] ? undefined : await product(upstream.url);
let figures: Figures;
try {
  if (!subject && !values['reference-only']) throw new Error('The product is not built: run "node tools/build.mjs" first, or give --reference-only.');
  const load =
    only.includes('completions') || only.includes('rpc') || only.includes('fanout')
      ? await underLoad(upstream.url, subject, measures)
      : { completions: new Map(), rpc: new Map(), fanout: new Map() };
  let start: Figures['start'] = new Map();
  if (only.includes('start') && subject) {
    say('start');
    start = await runStart(
      { floor: await reference({ name: 'node:http only', file: 'http-only.ts' }), product: subject, rounds: size.starts },
      measures,
    );
  }
  if (only.includes('idle') && subject) {
    say('idle');
    await runIdle({ product: subject, rounds: size.idles, settleMs: size.settleMs }, measures);
    for (const kind of heldKinds) await runHeld({ subject, kind, rounds: size.idles, step: size.held, settleMs: 1000 }, measures);
  }
  let loop: Figures['loop'] = [];
  if (only.includes('loop') && subject) {
    say('loop');
    loop = await runLoop({ subject, rounds: size.rounds, ms: size.loopMs, maxStreams: 400 }, measures);
  }
  let soak: Figures['soak'];
  if (only.includes('soak') && subject) {
    say('soak');
    soak = await runSoak({ subject, ...soakSize, settleMs: size.settleMs }, measures);
  }
  let history: Figures['history'] = new Map();
  const historical = only.includes('history') && subject ? await historyProduct(upstream.url) : undefined;
  if (historical) {
    say('history');
    using _ = { [Symbol.dispose]: historical.dispose };
    history = await runHistory({ subject: historical, ...historySize }, measures);
  }
  let conversations: Figures['conversations'] = new Map();
  const filled = only.includes('conversations') && subject ? await product(upstream.url) : undefined;
  if (filled) {
    say('conversations');
    using _ = { [Symbol.dispose]: filled.dispose };
    conversations = await runConversations({ subject: filled, messages: 200, settleMs: size.settleMs, ...conversationSize }, measures);
  }
  let tools: Figures['tools'] = new Map();
  if (only.includes('tools') && subject) {
    say('tools');
    tools = await runTools({ upstreamUrl: upstream.url, settleMs: size.settleMs, ...toolSize }, measures);
  }
  let hooks: Figures['hooks'] = [];
  if (only.includes('hooks') && subject) {
    say('hooks');
    hooks = await runHooks({ upstreamUrl: upstream.url, settleMs: size.settleMs, ...hookSize }, measures);
  }
  let schedule: Figures['schedule'];
  if (only.includes('schedule') && subject) {
    say('schedule');
    const floor = await reference({ name: 'node:http only', file: 'http-only.ts' });
    const homes = { agents: 500, jobs: 2_000, few: 20, settleMs: size.settleMs };
    schedule = await runSchedule({ upstream, floor, ...homes, ...scheduleSize }, measures);
  }
  let graphs: Figures['graphs'] = [];
  if (only.includes('graphs') && subject) {
    say('graphs');
    graphs = await runGraphs({ upstream, settleMs: size.settleMs, ...graphSize }, measures);
  }
  let crowd: Figures['crowd'] = [];
  if (only.includes('crowd') && subject) {
    say('crowd');
    crowd = await runCrowd({ upstreamUrl: upstream.url, settleMs: size.settleMs, ...crowdSize }, measures);
  }
  let pages: Figures['pages'] = [];
  if (only.includes('pages') && subject) {
    say('pages');
    pages = await runPages({ upstreamUrl: upstream.url, ...pageSize }, measures);
  }
  if (only.includes('postgres') && subject) {
    if (findPostgres() === undefined) say('postgres: skipped, PostgreSQL is not installed');
    else {
      say('postgres');
      await runPostgres({ upstream, ...postgresSize }, measures);
    }
  }
  figures = { ...load, start, loop, soak, history, conversations, tools, hooks, schedule, graphs, crowd, pages };
} finally {
  await upstream.stop();
  subject?.dispose();
}
if (only.includes('store')) runStore(measures);
if (only.includes('memory')) runMemory(measures);

const budgets = readBudgets();
const judged = judgeAll(budgets, measures, values.full ? 1 : budgets.quickTolerance);
const wrong = wrongAnswers(figures.completions);
const verdicts = verdictTable(judged);
console.log(`${verdicts}\n\n${noiseLine(figures.completions)}\n\n${figureTables(figures)}`);
for (const line of wrong) say(`WRONG ANSWERS  ${line}`);

mkdirSync(join(root, '.build', 'bench'), { recursive: true });
writeFileSync(
  join(root, '.build', 'bench', 'last.json'),
  JSON.stringify({ at: new Date().toISOString(), node: process.version, measures, judged }, undefined, 1),
);
const whole = values.full && subject && values.only === undefined && values.scenarios === undefined;
if (whole && wrong.length === 0) {
  const text = `# Benchmark results\n\nMade by \`npm run bench -- --full\`; do not edit. How it measures and what the names mean: [README.md](README.md).\n\n${provenance()}\n\n## Goals\n\n${verdicts}\n\n${noiseLine(figures.completions)}\n\n## Figures (medians of ${size.rounds} rounds)\n\nRatios within one run mean something, absolute figures of two runs do not.\n\n${figureTables(figures)}\n`;
  writeFileSync(join(root, 'bench', 'RESULTS.md'), text);
  say('written: bench/RESULTS.md');
}
const missed = judged.filter((one) => one.verdict === 'missed');
if (subject && missed.length > 0) say(`missed: ${missed.map((one) => `${one.goal.id} (${one.goal.what})`).join('; ')}`);
process.exitCode = wrong.length > 0 || (subject && missed.length > 0) ? 1 : 0;
