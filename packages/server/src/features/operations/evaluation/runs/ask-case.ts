import type { EvalCase, EvalResult } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import { newTraceId } from '../../../../kernel/ids.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { TrialOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import type { After } from '../checks/check-thread.ts';
import { checkAnswer, toolsOf } from '../checks/checks.ts';
import { judge } from '../checks/judge.ts';
import type { StoredVariant } from '../store.ts';

export interface AskDeps {
  readonly turns: Pick<TurnsApi, 'evaluate'>;
  readonly fence: FenceText;
  /** Uses real time, in which the threads of checks live, whatever clock the rest uses. */
  readonly after: After;
  /** Removes what is a secret or looks like one. */
  readonly redactText: (text: string) => string;
}

const maxAnswer = 8_000;

type Answered = Omit<EvalResult, 'variant'>;

/** The result of one question, and whether no further one can be paid. */
export interface AskedCase {
  readonly result: Answered;
  readonly overBudget?: string;
}

/** Asks the question of a case, and checks the answer. Rejects when the evaluation was stopped, or its token revoked. */
export async function askCase(deps: AskDeps, one: EvalCase, { agentId, model }: StoredVariant, call: CallContext): Promise<AskedCase> {
  const { input: message, system, history = [] } = one;
  let outcome: TrialOutcome;
  try {
    outcome = await deps.turns.evaluate({ agentId, model, system, history, message }, call);
  } catch (error) {
    if (!(error instanceof AppError) || call.signal.aborted || error.code === 'unauthenticated' || error.code === 'unavailable') throw error;
    return { result: { ...nothing, error: { kind: error.code, text: deps.redactText(error.message) } } };
  }
  if (call.signal.aborted) throw new AppError('cancelled', 'The evaluation was stopped');
  const measured = measuresOf(outcome);
  const { failure } = outcome;
  if (failure !== undefined) {
    const text = deps.redactText(failure.cause ?? failure.message);
    const result = { ...measured, outcome: 'error' as const, checks: [], error: { kind: failure.kind, text } };
    return { result, ...(outcome.finishReason === 'budget_exceeded' && { overBudget: text }) };
  }
  let judgeCostUsd: number | null | undefined;
  let overBudget: string | undefined;
  const checks = await checkAnswer(one, outcome, {
    after: deps.after,
    async askJudge({ rubric, model: judgeModel }) {
      const request = { agentId, model: judgeModel, rubric, question: message, reference: one.reference, answer: outcome.text };
      const judged = await judge(deps, request, { ...call, traceId: newTraceId() }).catch((error: unknown) => {
        if (!(error instanceof AppError) || call.signal.aborted || error.code === 'unauthenticated' || error.code === 'unavailable') throw error;
        return { passed: null, reason: `the judge failed: ${error.message}`, costUsd: 0, isOverBudget: false };
      });
      judgeCostUsd = judged.costUsd;
      if (judged.isOverBudget) overBudget = judged.reason;
      return { ...judged, reason: deps.redactText(judged.reason) };
    },
  });
  const verdict = checks.some(({ passed }) => passed === false) ? 'failed' : checks.some(({ passed }) => passed === null) ? 'error' : 'passed';
  const result = { ...measured, outcome: verdict, checks, ...(judgeCostUsd !== undefined && { judgeCostUsd }) } as const;
  return { result, ...(overBudget !== undefined && { overBudget }) };
}

const nothing = {
  outcome: 'error' as const,
  answer: '',
  checks: [],
  turnId: null,
  traceId: null,
  model: null,
  tools: [],
  tokensUsed: { input: 0, output: 0, total: 0 },
  costUsd: 0,
  latencyMs: 0,
};

function measuresOf(outcome: TrialOutcome) {
  const { text, turnId, traceId, model, tokensUsed, costUsd, latencyMs } = outcome;
  const answer = text.slice(0, maxAnswer).toWellFormed();
  return { answer, turnId, traceId, model: model === '' ? null : model, tools: toolsOf(outcome).slice(0, 100), tokensUsed, costUsd, latencyMs };
}
