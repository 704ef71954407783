import { primaryModel } from '../features/conversations/turns/preparation/resolve-target.ts';
import { findTurn } from '../features/conversations/turns/store.ts';
import { createEvaluation, type EvaluationDeps } from '../features/operations/evaluation/evaluation.ts';
import { systemClock } from '../kernel/clock.ts';
import type { Models } from '../llm/models.ts';
import type { Assembly } from './assembly.ts';

export interface EvaluationWiring extends Pick<EvaluationDeps, 'agents' | 'turns' | 'sessions' | 'getTrace' | 'fence' | 'identityOf'> {
  readonly models: Models;
}

/** Wires evaluations and replays. */
export function wireEvaluation({ building, options, core, db, bootId, onClaimed }: Assembly, { models, ...deps }: EvaluationWiring) {
  const evaluation = building.use(
    createEvaluation({
      ...core('evaluation'),
      ...deps,
      bootId,
      // The threads of checks live in real time, whatever clock the rest uses.
      after: systemClock.after,
      redactText: options.redactor.redact,
      findModel: (name) => models.resolve(name),
      knowsModel: (name) => models.resolve(name) !== undefined,
      modelOf: (agent) => primaryModel(agent, models),
      turnById: (id) => db.read(findTurn, { id }),
    }),
  );
  onClaimed(async () => evaluation.claimed());
  return evaluation;
}
