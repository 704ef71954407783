import type { EvalResult, EvalRun } from '@gatehouse/contract';
import { operation, query } from '../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../kernel/owners.ts';

export interface EvalRow {
  /** `ev_<uuid>` */
  readonly id: string;
  readonly name: string | null;
  readonly state: EvalRun['state'];
  readonly reason: string | null;
  readonly principalId: string;
  /** JSON of `StoredVariant[]`. */
  readonly variantsJson: string;
  /** JSON of `EvalCase[]`. */
  readonly casesJson: string;
  readonly caseCount: number;
  /** 1e-9 US dollars. */
  readonly budgetNano: number | null;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  /** The boot that runs it, or ran it. */
  readonly bootId: string;
}

export interface StoredVariant {
  readonly agentId: string;
  readonly model?: string | undefined;
}

export interface EvalResultRow {
  readonly evalId: string;
  /** Position, from 0. */
  readonly caseNo: number;
  readonly variantNo: number;
  readonly outcome: EvalResult['outcome'];
  /** Cost of the answer in 1e-9 US dollars; null when a price is not known. */
  readonly costNano: number | null;
  readonly judgeNano: number;
  readonly latencyMs: number;
  /** JSON of the rest of the `EvalResult`. */
  readonly detailJson: string;
}

/** Evaluations that are kept; the oldest are deleted for new ones. */
const maxKept = 100;

const runColumns = [
  'id',
  'name',
  'state',
  'reason',
  'principalId',
  'variantsJson',
  'casesJson',
  'caseCount',
  'budgetNano',
  'createdAtMs',
  'endedAtMs',
  'bootId',
] as const;
const resultColumns = ['evalId', 'caseNo', 'variantNo', 'outcome', 'costNano', 'judgeNano', 'latencyMs', 'detailJson'] as const;

const insertRun = query<EvalRow>(({ db, each }) => db.insertInto('evalRun').values(each(runColumns)));
const tooOld = query<{ keep: number }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('evalRun')
    .select('id')
    .where('state', '<>', 'running')
    .orderBy('createdAtMs', 'desc')
    .orderBy('id', 'desc')
    .limit(10)
    .offset(p('keep')),
);
const deleteResults = query<{ id: string }>(({ db, p }) => db.deleteFrom('evalResult').where('evalId', '=', p('id')));
const deleteRun = query<{ id: string }>(({ db, p }) => db.deleteFrom('evalRun').where('id', '=', p('id')));

/** Stores an evaluation that begins, and deletes the oldest ones beyond the limit. */
export const addRun = operation('evaluation.add', async (tx, row: EvalRow): Promise<void> => {
  for (const { id } of await tx.all(tooOld, { keep: maxKept - 1 })) {
    await tx.run(deleteResults, { id });
    await tx.run(deleteRun, { id });
  }
  await tx.run(insertRun, row);
});

const insertResult = query<EvalResultRow>(({ db, each }) =>
  db
    .insertInto('evalResult')
    .values(each(resultColumns))
    .onConflict((conflict) => conflict.columns(['evalId', 'caseNo', 'variantNo']).doNothing()),
);
export const addResult = operation('evaluation.addResult', async (tx, row: EvalResultRow): Promise<void> => {
  await tx.run(insertResult, row);
});

export interface EvalEnd {
  readonly id: string;
  readonly state: Exclude<EvalRun['state'], 'running'>;
  readonly reason: string | null;
  readonly atMs: number;
}
const endOne = query<EvalEnd>(({ db, p }) =>
  db
    .updateTable('evalRun')
    .set({ state: p('state'), reason: p('reason'), endedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('state', '=', 'running'),
);
export const endEvaluation = operation('evaluation.end', async (tx, end: EvalEnd): Promise<void> => {
  await tx.run(endOne, end);
});

const interrupt = query<{ reason: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('evalRun')
    .set({ state: 'interrupted', reason: p('reason'), endedAtMs: p('atMs') })
    .where('state', '=', 'running')
    .where(ofDeadBoot(sql, 'evalRun.bootId')),
);
/** Ends what dead boots left running. */
export const interruptRuns = operation('evaluation.interrupt', async (tx, { atMs }: { readonly atMs: number }): Promise<void> => {
  await tx.run(interrupt, { reason: 'The daemon ended', atMs });
});

/** Counts of one variant of an evaluation. */
export interface VariantSums {
  readonly evalId: string;
  readonly variantNo: number;
  readonly passed: number;
  readonly failed: number;
  readonly errors: number;
  readonly costNano: number;
  readonly judgeNano: number;
  readonly unpriced: number;
  readonly latencyMs: number;
  readonly answers: number;
}

export interface RunsPage {
  /** Null: of everybody. */
  readonly principalId: string | null;
  readonly evalId?: string | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** Returns evaluations, newest first, with their counts. */
export const listEvaluations = operation(
  'evaluation.list',
  async (tx, { principalId, evalId, offset, limit }: RunsPage): Promise<{ runs: EvalRow[]; sums: VariantSums[]; total: number }> => {
    const [counted] = await tx.build<{ total: number }>((db, sql) => {
      let from = db.selectFrom('evalRun');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (evalId !== undefined) from = from.where('id', '=', evalId);
      return from.select(sql<number>`count(*)`.as('total'));
    });
    const runs = await tx.build<EvalRow>((db) => {
      let from = db.selectFrom('evalRun').select(runColumns);
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (evalId !== undefined) from = from.where('id', '=', evalId);
      return from.orderBy('createdAtMs', 'desc').orderBy('id', 'desc').limit(limit).offset(offset);
    });
    if (runs.length === 0) return { runs, sums: [], total: counted?.total ?? 0 };
    const sums = await tx.build<VariantSums>((db, sql) =>
      db
        .selectFrom('evalResult')
        .where(
          'evalId',
          'in',
          runs.map(({ id }) => id),
        )
        .select([
          'evalId',
          'variantNo',
          sql<number>`sum(case when outcome = 'passed' then 1 else 0 end)`.as('passed'),
          sql<number>`sum(case when outcome = 'failed' then 1 else 0 end)`.as('failed'),
          sql<number>`sum(case when outcome = 'error' then 1 else 0 end)`.as('errors'),
          sql<number>`coalesce(sum(cost_nano), 0)`.as('costNano'),
          sql<number>`sum(judge_nano)`.as('judgeNano'),
          sql<number>`sum(case when cost_nano is null then 1 else 0 end)`.as('unpriced'),
          sql<number>`sum(latency_ms)`.as('latencyMs'),
          sql<number>`count(*)`.as('answers'),
        ])
        .groupBy(['evalId', 'variantNo']),
    );
    return { runs, sums, total: counted?.total ?? 0 };
  },
);

const resultsBetween = query<{ evalId: string; from: number; to: number }, EvalResultRow>(({ db, p }) =>
  db
    .selectFrom('evalResult')
    .select(resultColumns)
    .where('evalId', '=', p('evalId'))
    .where('caseNo', '>=', p('from'))
    .where('caseNo', '<', p('to'))
    .orderBy('caseNo')
    .orderBy('variantNo'),
);
/** Returns the results of a page of cases. */
export const readResults = operation(
  'evaluation.results',
  async (tx, input: { readonly evalId: string; readonly from: number; readonly to: number }): Promise<EvalResultRow[]> =>
    tx.all(resultsBetween, input),
);

export const evaluationOperations = [addRun, addResult, endEvaluation, interruptRuns, listEvaluations, readResults];
