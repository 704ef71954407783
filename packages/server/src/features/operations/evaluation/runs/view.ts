import { EvalCase, type EvalResult, type EvalRun, once } from '@gatehouse/contract';
import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';
import type { EvalEnd, EvalResultRow, EvalRow, StoredVariant, VariantSums } from '../store.ts';

const Cases = once(() => z.array(EvalCase()));

export const casesOf = ({ casesJson }: EvalRow): EvalCase[] => Cases().parse(parseJson(casesJson));

/** Returns an evaluation as callers see it; `unstored`: its end, when it could not be stored. */
export function viewOf(row: EvalRow, sums: readonly VariantSums[], unstored: EvalEnd | undefined): EvalRun {
  // Only `eval.run` writes this column.
  const variants = parseJson(row.variantsJson) as StoredVariant[];
  const state = unstored?.state ?? row.state;
  const reason = unstored?.reason ?? row.reason;
  const own = sums.filter(({ evalId }) => evalId === row.id);
  return {
    evalId: row.id,
    name: row.name,
    state,
    ...(reason !== null && { reason }),
    by: row.principalId,
    createdAt: row.createdAtMs,
    endedAt: unstored?.atMs ?? row.endedAtMs,
    cases: row.caseCount,
    budgetUsd: row.budgetNano === null ? null : row.budgetNano / 1e9,
    costUsd: own.reduce((sum, { costNano, judgeNano }) => sum + costNano + judgeNano, 0) / 1e9,
    variants: variants.map(({ agentId, model }, at) => {
      const sum = own.find(({ variantNo }) => variantNo === at);
      return {
        agentId,
        model: model ?? null,
        passed: sum?.passed ?? 0,
        failed: sum?.failed ?? 0,
        errors: sum?.errors ?? 0,
        pending: row.caseCount - (sum?.answers ?? 0),
        costUsd: (sum?.costNano ?? 0) / 1e9,
        unpriced: sum?.unpriced ?? 0,
        avgLatencyMs: sum === undefined || sum.answers === 0 ? null : Math.round(sum.latencyMs / sum.answers),
      };
    }),
  };
}

export function resultOf({ variantNo, outcome, costNano, latencyMs, detailJson }: EvalResultRow): EvalResult {
  // Only `runCases` writes this column.
  const detail = parseJson(detailJson) as Omit<EvalResult, 'variant' | 'outcome' | 'costUsd' | 'latencyMs'>;
  return { ...detail, variant: variantNo, outcome, costUsd: costNano === null ? null : costNano / 1e9, latencyMs };
}
