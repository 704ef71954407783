import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { Measures } from './measures.ts';
import { median } from './stats.ts';

const Goal = z.strictObject({
  id: z.string(),
  what: z.string(),
  measure: z.string(),
  unit: z.string(),
  better: z.enum(['lower', 'higher']),
  must: z.number(),
  stretch: z.number(),
});
/** A bound that no change may exceed: 1.15 times an accepted figure, as a ratio to a reference of the same run. */
const Bound = z.strictObject({ id: z.string(), what: z.string(), measure: z.string(), unit: z.string(), bound: z.number() });
export const Budgets = z.strictObject({ quickTolerance: z.number().min(1), goals: z.array(Goal), ratchet: z.array(Bound) });
export type Budgets = z.output<typeof Budgets>;
export type Goal = z.output<typeof Goal>;

/** `missed`: the median and the best round are both beyond the goal. One bad round on a noisy machine misses nothing. */
export type Verdict = 'stretch' | 'must' | 'within noise' | 'missed' | 'not measured';
export interface Judged {
  readonly goal: Goal;
  readonly verdict: Verdict;
  readonly median: number;
  readonly best: number;
  readonly worst: number;
}

export function readBudgets(file = join(import.meta.dirname, '..', 'budgets.json')): Budgets {
  return Budgets.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** `tolerance` widens the must column: 1 for a full run. */
export function judge(goal: Goal, rounds: readonly number[], tolerance: number): Judged {
  const sorted = rounds.toSorted((a, b) => (goal.better === 'lower' ? a - b : b - a));
  const middle = median(rounds);
  const figures = { goal, median: middle, best: sorted[0] ?? NaN, worst: sorted.at(-1) ?? NaN };
  if (rounds.length === 0) return { ...figures, verdict: 'not measured' };
  const meets = (value: number, limit: number): boolean => (goal.better === 'lower' ? value <= limit : value >= limit);
  const must = goal.better === 'lower' ? goal.must * tolerance : goal.must / tolerance;
  if (meets(middle, goal.stretch)) return { ...figures, verdict: 'stretch' };
  if (meets(middle, must)) return { ...figures, verdict: 'must' };
  return { ...figures, verdict: meets(figures.best, must) ? 'within noise' : 'missed' };
}

export function judgeAll(budgets: Budgets, measures: Measures, tolerance: number): Judged[] {
  return budgets.goals.map((goal) => judge(goal, measures.get(goal.measure), tolerance));
}

/** Judges the bounds of the ratchet: one is missed when the median and the smallest round are both beyond it. */
export function judgeRatchet(budgets: Budgets, measures: Measures): Judged[] {
  return budgets.ratchet.map(({ bound, ...one }) => judge({ ...one, better: 'lower', must: bound, stretch: bound }, measures.get(one.measure), 1));
}
