import { spawnSync } from 'node:child_process';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { completionNames, completions, type Sample, type Samples } from '../scenarios/completions.ts';
import type { ConversationSamples } from '../scenarios/conversations.ts';
import type { CrowdSample } from '../scenarios/crowd.ts';
import type { FanoutSample } from '../scenarios/fanout.ts';
import type { GraphSample } from '../scenarios/graphs.ts';
import type { HistorySamples } from '../scenarios/history.ts';
import type { HookSample } from '../scenarios/hooks.ts';
import type { PageSample } from '../scenarios/pages.ts';
import type { ScheduleFigures } from '../scenarios/schedule.ts';
import type { ToolSamples } from '../scenarios/tools.ts';
import type { LoopSample } from '../scenarios/loop.ts';
import type { RpcSample } from '../scenarios/rpc.ts';
import type { SoakSample } from '../scenarios/soak.ts';
import type { Judged } from './budgets.ts';
import { median } from './stats.ts';

export interface Figures {
  readonly completions: Samples;
  readonly rpc: ReadonlyMap<string, readonly RpcSample[]>;
  readonly fanout: ReadonlyMap<string, readonly FanoutSample[]>;
  readonly start: ReadonlyMap<string, readonly number[]>;
  readonly loop: readonly LoopSample[];
  readonly soak: SoakSample | undefined;
  readonly history: HistorySamples;
  readonly conversations: ConversationSamples;
  readonly tools: ToolSamples;
  readonly hooks: readonly HookSample[];
  readonly schedule: ScheduleFigures | undefined;
  readonly graphs: readonly GraphSample[];
  readonly crowd: readonly CrowdSample[];
  readonly pages: readonly PageSample[];
}

function number(value: number, digits = 2): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '–';
}

export function verdictTable(judged: readonly Judged[]): string {
  const rows = judged.map(({ goal, verdict, median: middle, best, worst }) => {
    const range = verdict === 'not measured' ? '–' : `${number(best)} … ${number(worst)}`;
    const sign = goal.better === 'lower' ? '≤' : '≥';
    return `| ${goal.id} | ${goal.what} | ${number(middle)} | ${range} | ${goal.unit} | ${sign} ${goal.must} | ${sign} ${goal.stretch} | ${verdict} |`;
  });
  return ['| goal | what | median | best … worst | unit | must | stretch | verdict |', '|---|---|--:|---|---|--:|--:|---|', ...rows].join('\n');
}

function completionTables(samples: Samples): string {
  const tables: string[] = [];
  for (const name of completionNames) {
    const rows: string[] = [];
    for (const [target, byName] of samples) {
      const rounds = byName.get(name);
      if (!rounds) continue;
      const middle = (figure: (sample: Sample) => number): number => median(rounds.map(figure));
      const failed = rounds.reduce((sum, sample) => sum + sample.failed, 0);
      rows.push(
        `| ${target} | ${number(
          middle((one) => one.rate),
          0,
        )} | ${number(
          middle((one) => one.cpuPerAnswer),
          0,
        )} | ${number(
          middle((one) => one.cpuPerDelta),
          1,
        )} | ${number(middle((one) => one.p50))} / ${number(middle((one) => one.p99))} | ${number(middle((one) => one.ttft50))} / ${number(middle((one) => one.ttft99))} | ${failed} |`,
      );
    }
    if (rows.length === 0) continue;
    const head = [
      '| target | answers/s | CPU µs per answer | CPU µs per delta | p50 / p99 ms | TTFT p50 / p99 ms | failed |',
      '|---|--:|--:|--:|--:|--:|--:|',
    ];
    tables.push([`### ${name}: ${completions[name].what}`, '', ...head, ...rows].join('\n'));
  }
  return tables.join('\n\n');
}

export function figureTables(figures: Figures): string {
  const parts = [completionTables(figures.completions)];
  if (figures.rpc.size > 0) {
    const rows = [...figures.rpc].map(([name, rounds]) => {
      const middle = (figure: (sample: RpcSample) => number): number => median(rounds.map(figure));
      return `| ${name} | ${number(
        middle((one) => one.cpuPerCall),
        1,
      )} | ${number(middle((one) => one.p50))} / ${number(middle((one) => one.p99))} |`;
    });
    parts.push(
      ['### system.ping over WebSocket, 16 connections', '', '| target | CPU µs per call | p50 / p99 ms |', '|---|--:|--:|', ...rows].join('\n'),
    );
  }
  if (figures.fanout.size > 0) {
    const rows = [...figures.fanout].map(([name, rounds]) => {
      const middle = (figure: (sample: FanoutSample) => number): number => median(rounds.map(figure));
      return `| ${name} | ${number(middle((one) => one.cpuPerReader))} | ${number(
        middle((one) => one.bytesPerEvent),
        0,
      )} |`;
    });
    parts.push(['### One event to 1000 readers', '', '| target | CPU µs per reader | bytes |', '|---|--:|--:|', ...rows].join('\n'));
  }
  if (figures.loop.length > 0) {
    const rows = figures.loop.map(
      ({ streams, cpuShare, p99, max }) => `| ${streams} | ${number(cpuShare * 100, 0)} % | ${number(p99, 1)} | ${number(max, 1)} |`,
    );
    parts.push(
      ['### Event loop under paced streams', '', '| streams | CPU of one core | delay p99 ms | longest ms |', '|--:|--:|--:|--:|', ...rows].join(
        '\n',
      ),
    );
  }
  if (figures.soak !== undefined) {
    const { turns, connects, unanswered, looksMb } = figures.soak;
    parts.push(
      `### Soak\n\n${turns} turns and ${connects} clients that vanished (${unanswered} of them before the first byte): resident memory after each fifth of them: ${looksMb.map((mb) => number(mb, 1)).join(', ')} MB.`,
    );
  }
  if (figures.history.size > 0) {
    const rows = [...figures.history].map(([name, rounds]) => `| ${name} | ${number(median(rounds), 0)} |`);
    parts.push(
      ['### A turn of a conversation, in a window of 2048 tokens', '', '| history and memory | CPU µs per turn |', '|---|--:|', ...rows].join('\n'),
    );
  }
  if (figures.conversations.size > 0) {
    const rows = [...figures.conversations].map(
      ([name, rounds]) => `| session.${name} | ${number(median(rounds.map(({ p50 }) => p50)))} / ${number(median(rounds.map(({ p95 }) => p95)))} |`,
    );
    parts.push(['### Conversations of 200 messages', '', '| method | p50 / p95 ms |', '|---|--:|', ...rows].join('\n'));
  }
  if (figures.tools.size > 0) {
    const rows = [...figures.tools].map(([name, rounds]) => `| ${name} | ${number(median(rounds), 0)} |`);
    parts.push(['### A turn of a new conversation, with tools', '', '| tools and calls | CPU µs per turn |', '|---|--:|', ...rows].join('\n'));
  }
  if (figures.start.size > 0) {
    const rows = [...figures.start].map(
      ([name, rounds]) => `| ${name} | ${number(median(rounds), 0)} | ${number(Math.min(...rounds), 0)} … ${number(Math.max(...rounds), 0)} |`,
    );
    parts.push(['### Start to first healthy answer', '', '| target | ms | range |', '|---|--:|---|', ...rows].join('\n'));
  }
  if (figures.hooks.length > 0) parts.push(hookTable(figures.hooks));
  if (figures.schedule !== undefined) parts.push(scheduleTable(figures.schedule));
  if (figures.graphs.length > 0) parts.push(graphTable(figures.graphs));
  if (figures.crowd.length > 0) parts.push(crowdTable(figures.crowd));
  if (figures.pages.length > 0) parts.push(pageTable(figures.pages));
  return parts.join('\n\n');
}

function hookTable(rounds: readonly HookSample[]): string {
  const middle = (figure: (sample: HookSample) => number, digits = 0): string => number(median(rounds.map(figure)), digits);
  const rows = [
    `| CPU µs per accepted webhook | ${middle((one) => one.cpuPerHook)} |`,
    `| the same, behind waiting ones | ${middle((one) => one.cpuBehind)} |`,
    `| CPU µs of R per whole answer | ${middle((one) => one.cpuOfR)} |`,
    `| answer while turns stream, p50 / p99 ms | ${middle((one) => one.p50, 2)} / ${middle((one) => one.p99, 2)} |`,
  ];
  return ['### Webhooks while turns run', '', '| figure | |', '|---|--:|', ...rows].join('\n');
}

function scheduleTable({ startMs, floorMs, idle, ticks }: ScheduleFigures): string {
  const middle = (values: readonly number[], digits = 0): string => number(median(values), digits);
  const rows = [
    `| start, ms (node:http only: ${middle(floorMs)}) | ${middle(startMs)} |`,
    `| CPU at rest, % of a core | ${middle(
      idle.map(({ cpuShare }) => cpuShare * 100),
      2,
    )} |`,
    `| memory at rest, MB | ${middle(idle.map((one) => one.rssMb))} |`,
    `| beats meanwhile | ${middle(idle.map((one) => one.beats))} |`,
    `| CPU µs per occurrence, with few other jobs / with many | ${middle(ticks.map((one) => one.few))} / ${middle(ticks.map((one) => one.many))} |`,
  ];
  return ['### 500 agents and 2000 jobs', '', '| figure | |', '|---|--:|', ...rows].join('\n');
}

function graphTable(rounds: readonly GraphSample[]): string {
  const middle = (figure: (sample: GraphSample) => number): string => number(median(rounds.map(figure)), 0);
  const rows = [
    `| a node of a graph of 20 | ${middle((one) => one.perNode)} |`,
    `| a turn by agent.execute, four at a time | ${middle((one) => one.perTurn)} |`,
    `| a turn by agent.execute, one at a time | ${middle((one) => one.perLoneTurn)} |`,
    `| a whole answer of R | ${middle((one) => one.perCall)} |`,
  ];
  return ['### Graphs against plain turns', '', '| what | CPU µs |', '|---|--:|', ...rows].join('\n');
}

function crowdTable(rounds: readonly CrowdSample[]): string {
  const middle = (figure: (sample: CrowdSample) => number, digits = 1): string => number(median(rounds.map(figure)), digits);
  const rows = [
    `| model calls open at once | ${middle((one) => one.mostOpen, 0)} |`,
    `| turn of another conversation alone, p50 / p99 ms | ${middle((one) => one.alone.p50)} / ${middle((one) => one.alone.p99)} |`,
    `| the same while they run, p50 / p99 / longest ms | ${middle((one) => one.concurrent.p50)} / ${middle((one) => one.concurrent.p99)} / ${middle((one) => one.concurrent.max)} |`,
    `| event-loop delay, p99 / p99.9 / longest ms | ${middle((one) => one.loop.p99)} / ${middle((one) => one.loop.p999)} / ${middle((one) => one.loop.max)} |`,
    `| of that its own work, p99 / p99.9 / longest ms | ${middle((one) => one.held.p99)} / ${middle((one) => one.held.p999)} / ${middle((one) => one.held.max)} |`,
    `| memory before / at most / after, MB | ${middle((one) => one.rss.before)} / ${middle((one) => one.rss.peak)} / ${middle((one) => one.rss.after)} |`,
    `| CPU µs per sub-agent, including the concurrent turns | ${middle((one) => one.cpuPerRun, 0)} |`,
  ];
  return ['### Two hundred sub-agents in twenty graphs', '', '| figure | |', '|---|--:|', ...rows].join('\n');
}

function pageTable(samples: readonly PageSample[]): string {
  const rows = samples.map(
    ({ page, tasks, taskMs, taskWallMs, inputs, inputMs }) =>
      `| ${page} | ${tasks} | ${number(taskMs, 0)} | ${number(taskWallMs, 0)} | ${inputs} | ${number(inputMs, 0)} |`,
  );
  return [
    '### The dashboard while they run',
    '',
    '| page | tasks | longest, CPU ms | longest on the clock | inputs | slowest, ms |',
    '|---|--:|--:|--:|--:|--:|',
    ...rows,
  ].join('\n');
}

/** A/A: the reference against itself in the same run shows what a difference is worth. */
export function noiseLine(samples: Samples): string {
  const first = samples.get('R')?.get('json16') ?? [];
  const second = samples.get('R again')?.get('json16') ?? [];
  const ratios = second.map((sample, round) => sample.cpuPerAnswer / (first[round]?.cpuPerAnswer ?? NaN));
  if (ratios.length === 0) return '';
  return `Noise of this run: a second copy of R costs ${number(median(ratios))} R (${number(Math.min(...ratios))} … ${number(Math.max(...ratios))}) per whole answer.`;
}

export function provenance(): string {
  const git = (...args: string[]): string => spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).stdout?.trim() ?? '';
  // The results file is being rewritten by this very run.
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', ':/', ':!/bench/RESULTS.md') !== '';
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'CPU'}, ${Math.round(totalmem() / 2 ** 30)} GB, ${platform()} ${release()} ${arch()}`;
  return [
    `- Date: ${new Date().toISOString().slice(0, 10)}`,
    `- Commit: ${git('rev-parse', '--short', 'HEAD') || 'unknown'}${changed ? ' and changes not committed' : ''}`,
    `- Node: ${process.version}`,
    `- Machine: ${machine}`,
  ].join('\n');
}
