import type { EvalCase } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../../../kernel/call-context.ts';
import { newTraceId } from '../../../../kernel/ids.ts';
import type { EvalEnd, EvalResultRow, StoredVariant } from '../store.ts';
import { type AskDeps, type AskedCase, askCase } from './ask-case.ts';

export interface EvaluationWork {
  readonly id: string;
  readonly cases: readonly EvalCase[];
  readonly variants: readonly StoredVariant[];
  readonly concurrency: number;
  readonly budgetNano: number | null;
  /** Aborted with the reason of the stop. */
  readonly signal: AbortSignal;
}

export interface RunCasesDeps extends AskDeps {
  /** Returns the identity of the token as it is now; undefined once it was revoked. */
  readonly identity: () => Identity | undefined;
  readonly keep: (row: EvalResultRow) => Promise<void>;
}

type Ending = Pick<EvalEnd, 'state' | 'reason'>;

const nano = (usd: number | null | undefined) => (usd == null ? null : Math.round(usd * 1e9));

/** Asks every case of every variant, several at once, and stores each result as it arrives. Returns how it ended; never rejects. */
export async function runCases(deps: RunCasesDeps, work: EvaluationWork): Promise<Ending> {
  const { cases, variants, budgetNano } = work;
  const jobs = cases.flatMap((one, caseNo) => variants.map((variant, variantNo) => ({ one, caseNo, variant, variantNo })));
  const own = new AbortController();
  const signal = AbortSignal.any([work.signal, own.signal]);
  let ending: Ending | undefined;
  let spentNano = 0;
  let next = 0;

  /** Asks nothing more; `abort` also ends what runs. */
  function finish(as: Ending, { abort }: { readonly abort: boolean }): void {
    ending ??= as;
    if (abort) own.abort();
  }

  async function keep(asked: AskedCase, { caseNo, variantNo }: { readonly caseNo: number; readonly variantNo: number }): Promise<void> {
    const { outcome, costUsd, judgeCostUsd, latencyMs, ...rest } = asked.result;
    const costNano = nano(costUsd);
    const judgeNano = nano(judgeCostUsd) ?? 0;
    spentNano += (costNano ?? 0) + judgeNano;
    const detailJson = JSON.stringify({ ...rest, ...(judgeCostUsd !== undefined && { judgeCostUsd }) });
    await deps.keep({ evalId: work.id, caseNo, variantNo, outcome, costNano, judgeNano, latencyMs, detailJson });
    if (asked.overBudget !== undefined) finish({ state: 'budget_exceeded', reason: asked.overBudget }, { abort: false });
    else if (budgetNano !== null && spentNano >= budgetNano && next < jobs.length)
      finish({ state: 'budget_exceeded', reason: 'budgetUsd is spent' }, { abort: false });
  }

  async function worker(): Promise<void> {
    for (;;) {
      if (ending !== undefined || signal.aborted) return;
      const job = jobs[next];
      if (job === undefined) return;
      next += 1;
      const identity = deps.identity();
      if (identity === undefined) return finish({ state: 'stopped', reason: 'Its token was revoked' }, { abort: true });
      const call: CallContext = { identity, traceId: newTraceId(), requestId: work.id, signal, transport: 'process' };
      try {
        await keep(await askCase(deps, job.one, job.variant, call), job);
      } catch (error) {
        if (!signal.aborted) finish(endingOf(error), { abort: true });
        return;
      }
    }
  }

  await Promise.all(Array.from({ length: Math.min(work.concurrency, jobs.length) }, worker));
  if (ending !== undefined) return ending;
  return work.signal.aborted ? stoppedBy(work.signal.reason) : { state: 'completed', reason: null };
}

function endingOf(error: unknown): Ending {
  if (error instanceof AppError && error.code === 'unauthenticated') return { state: 'stopped', reason: 'Its token was revoked' };
  if (error instanceof AppError && error.code === 'unavailable') return { state: 'interrupted', reason: error.message };
  return { state: 'failed', reason: error instanceof AppError ? error.message : 'Internal error' };
}

/** `unavailable` is the stop of the daemon, everything else that of a person. */
function stoppedBy(reason: unknown): Ending {
  return reason instanceof AppError && reason.code === 'unavailable'
    ? { state: 'interrupted', reason: reason.message }
    : { state: 'stopped', reason: null };
}
