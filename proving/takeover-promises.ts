import type { WorkName } from './lib/stop-work.ts';
import { openNodes } from './lib/nodes.ts';
import { randomFrom } from './lib/random.ts';
import { type Cell, type CellStop, type NumberedCell, stopConfig } from './lib/stop-cell.ts';
import { startStopModel } from './lib/stop-model.ts';
import { type Death, playTakeover } from './lib/takeover.ts';
import { replaysPart } from './r28-nodes.ts';
import { replayMappings } from './r28-replays.ts';
import { nodeControls, stopsPart } from './r32-nodes.ts';

/** What the active daemon has promised before it dies, on the one that takes over: R28 and R32 on two daemons of one PostgreSQL. */
export interface TakeoverPromisesOptions {
  readonly deaths: readonly Death[];
  /** Stops, which are distributed over the deaths, and work that nobody stops, with each of them. */
  readonly stops?: { readonly cells: readonly Cell[]; readonly controls?: readonly WorkName[] };
  /** Webhooks and forgeries of each death. */
  readonly replays?: { readonly honest: number; readonly forgeries: number };
  /** How long a take-over and the effect of a stop are waited for, instead of their limits: a machine may do other work too. */
  readonly withinMs?: number;
  readonly seed: number;
  readonly broken?: string | readonly string[];
  readonly progress?: (line: string) => void;
}

export interface TakeoverPromisesReport {
  readonly stops: number;
  readonly resumed: number;
  /** The longest time from the take-over to the effect, in milliseconds. */
  readonly slowestMs: Readonly<Partial<Record<CellStop, number>>>;
  readonly honest: number;
  readonly replays: number;
  readonly forgeries: number;
  readonly wrong: readonly string[];
}

export async function proveTakeoverPromises(options: TakeoverPromisesOptions): Promise<TakeoverPromisesReport> {
  const { deaths, stops, replays, withinMs, seed, broken, progress } = options;
  const model = await startStopModel();
  const rounds = roundsOf(deaths.length, stops);
  const config = stopConfig(
    model.url,
    rounds.flatMap(({ cells, controls }) => [...cells, ...controls].map(({ cell }) => cell)),
  );
  const webhooks = { mappings: [...replayMappings, ...config.webhooks.mappings] };
  const report = { stops: 0, resumed: 0, slowestMs: {} as Partial<Record<CellStop, number>>, honest: 0, replays: 0, forgeries: 0 };
  const wrong: string[] = [];
  try {
    await using nodes = await openNodes({ ...config, webhooks }, { broken });
    let active = await nodes.start(0);
    await nodes.ready(active);
    for (const [index, death] of deaths.entries()) {
      const next = await nodes.start(index % 2 === 0 ? 1 : 0);
      await nodes.standsBy(next);
      const { cells = [], controls = [] } = rounds[index] ?? {};
      const stopping = stopsPart({ nodes, model, seed, cells, controls, withinMs });
      const replaying = replaysPart({ nodes, seed: randomFrom(seed + index).int(1_000_000), ...(replays ?? { honest: 0, forgeries: 0 }) });
      const parts = [...(stops === undefined ? [] : [stopping]), ...(replays === undefined ? [] : [replaying])];
      const played = await playTakeover(nodes, [active, next], parts, { ...death, withinMs });
      wrong.push(...played.wrong.map((line) => `take-over ${index} (${death.by}): ${line}`));
      report.stops += stopping.counts.stops;
      report.resumed += stopping.counts.resumed;
      for (const [stop, ms] of Object.entries(stopping.slowestMs) as [CellStop, number][])
        report.slowestMs[stop] = Math.max(report.slowestMs[stop] ?? 0, ms);
      for (const key of ['honest', 'replays', 'forgeries'] as const) report[key] += replaying.counts[key];
      progress?.(`take-over ${index + 1}/${deaths.length} (${death.by}): ready after ${Math.round(played.readyMs)} ms, ${wrong.length} wrong`);
      active = next;
    }
    return { ...report, wrong };
  } finally {
    await model.close();
  }
}

interface Round {
  readonly cells: readonly NumberedCell[];
  readonly controls: readonly NumberedCell[];
}

/** Distributes the cells over the rounds. Numbers follow the order in which the rounds name them. */
function roundsOf(count: number, stops: TakeoverPromisesOptions['stops']): readonly Round[] {
  if (stops === undefined) return [];
  const controls = (stops.controls ?? nodeControls).map((work): Cell => ({ stop: 'run.kill', work }));
  let index = 0;
  const numbered = (cell: Cell): NumberedCell => ({ cell, index: index++ });
  return Array.from({ length: count }, (_, round) => ({
    cells: stops.cells.filter((__, at) => at % count === round).map(numbered),
    controls: controls.map(numbered),
  }));
}
