import { setTimeout as sleep } from 'node:timers/promises';
import type { Measures } from '../lib/measures.ts';
import { rssMb } from '../lib/proc.ts';
import type { Startable } from '../lib/targets.ts';

/** Spawn to first healthy answer, floor and product in turn. The first round is not counted: it creates the database and fills the compile cache. */
export async function runStart(
  options: { readonly floor: Startable; readonly product: Startable; readonly rounds: number },
  measures: Measures,
): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>();
  for (let round = -1; round < options.rounds; round += 1) {
    for (const server of [options.floor, options.product]) {
      const running = await server.start();
      // Lets work finish that is postponed until after the start, such as filling a compile cache.
      await sleep(round < 0 ? 1500 : 100);
      await running.stop();
      if (round >= 0) times.set(server.name, [...(times.get(server.name) ?? []), running.startMs]);
    }
  }
  const floor = times.get(options.floor.name) ?? [];
  measures.add('start/http-only', ...(times.get(options.product.name) ?? []).map((ms, round) => ms / (floor[round] ?? NaN)));
  return times;
}

/** Returns the resident memory of a fresh server without calls, after `settleMs`. */
export async function runIdle(
  options: { readonly product: Startable; readonly rounds: number; readonly settleMs: number },
  measures: Measures,
): Promise<void> {
  for (let round = 0; round < options.rounds; round += 1) {
    const running = await options.product.start();
    await sleep(options.settleMs);
    measures.add('idle rss', rssMb(running.pid));
    await running.stop();
  }
}
