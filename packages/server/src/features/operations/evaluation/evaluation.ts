import { createCasesOf } from './cases-of.ts';
import { createFindTurn, type FindTurnDeps } from './find-turn.ts';
import { createReplay } from './replay.ts';
import { createEvaluationRuns, type RunsDeps } from './runs/runs.ts';

export type EvaluationDeps = FindTurnDeps &
  RunsDeps &
  Omit<Parameters<typeof createReplay>[0], 'findTurn'> &
  Omit<Parameters<typeof createCasesOf>[0], 'findTurn'>;

/** Asks questions again, without effects: earlier ones of other models, and those of test cases. */
export function createEvaluation(deps: EvaluationDeps) {
  const findTurn = createFindTurn(deps);
  const runs = createEvaluationRuns(deps);
  return {
    methods: { ...createReplay({ ...deps, findTurn }), ...createCasesOf({ ...deps, findTurn }), ...runs.methods },
    claimed: runs.claimed,
    drain: runs.drain,
    [Symbol.asyncDispose]: () => runs[Symbol.asyncDispose](),
  };
}
