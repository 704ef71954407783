import { join } from 'node:path';
import { judgeAll, readBudgets } from './budgets.ts';
import { Measures } from './measures.ts';

/** Options of a server that runs with one of the changes in `broken/`. */
export const breakage = (name: string, env: Readonly<Record<string, string>>) => ({
  nodeArgs: ['--import', join(import.meta.dirname, '../broken', `${name}.ts`)],
  env: { ...env },
});

/** Runs a scenario and returns the verdict on each of its measures. */
export async function verdictsOn(run: (measures: Measures) => Promise<unknown>): Promise<ReadonlyMap<string, string>> {
  const measures = new Measures();
  await run(measures);
  const budgets = readBudgets();
  return new Map(judgeAll(budgets, measures, budgets.quickTolerance).map(({ goal: { measure }, verdict }) => [measure, verdict]));
}

export const verdictOn = async (measure: string, run: (measures: Measures) => Promise<unknown>): Promise<string | undefined> =>
  (await verdictsOn(run)).get(measure);
