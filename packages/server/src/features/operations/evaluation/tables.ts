import type { EvalRow, EvalResultRow } from './store.ts';

/** Rows of `eval_run`. */
interface EvalRunTable {
  readonly id: string;
  readonly name: string | null;
  readonly state: EvalRow['state'];
  readonly reason: string | null;
  readonly principalId: string;
  readonly variantsJson: string;
  readonly casesJson: string;
  readonly caseCount: number;
  readonly budgetNano: number | null;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  readonly bootId: string;
}

/** Rows of `eval_result`. */
interface EvalResultTable {
  readonly evalId: string;
  readonly caseNo: number;
  readonly variantNo: number;
  readonly outcome: EvalResultRow['outcome'];
  readonly costNano: number | null;
  readonly judgeNano: number;
  readonly latencyMs: number;
  readonly detailJson: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly evalRun: EvalRunTable;
    readonly evalResult: EvalResultTable;
  }
}
