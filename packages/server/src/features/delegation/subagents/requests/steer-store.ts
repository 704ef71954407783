import { query, type Tx } from '../../../../kernel/db/operation.ts';

export interface SteerRow {
  readonly id: string;
  readonly text: string;
}

const untakenOf = query<{ runId: string }, SteerRow>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentSteer')
    .select(['id', 'text'])
    .where('runId', '=', p('runId'))
    .where(sql<boolean>`taken = 0`)
    .orderBy('id'),
);

/** Reads the messages for a run that no finished step contains. */
export function readSteers(tx: Tx, runId: string): Promise<SteerRow[]> {
  return tx.all(untakenOf, { runId });
}

const insert = query<SteerRow & { readonly runId: string; readonly atMs: number }>(({ db, each }) =>
  db.insertInto('subAgentSteer').values({ ...each(['id', 'runId', 'text', 'atMs']), taken: 0 }),
);

export async function addSteer(tx: Tx, input: SteerRow & { readonly runId: string; readonly atMs: number }): Promise<void> {
  const { id, runId, text, atMs } = input;
  await tx.run(insert, { id, runId, text, atMs });
}

const take = query<{ id: string }>(({ db, p }) => db.updateTable('subAgentSteer').set({ taken: 1 }).where('id', '=', p('id')));

/** Marks messages as part of a finished step. Part of `checkpointTurn`. */
export async function takeSteers(tx: Tx, ids: readonly string[]): Promise<void> {
  for (const id of ids) await tx.run(take, { id });
}

const allow = query<{ id: string; atMs: number; beforeMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ steeredAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where(sql<boolean>`(steered_at_ms is null or steered_at_ms <= ${p('beforeMs')} or steered_at_ms > ${p('atMs')})`),
);

/** Counts a message against the limit of a run; false when the previous one, from any sender, is too recent. */
export async function allowSteer(tx: Tx, input: { readonly id: string; readonly atMs: number; readonly beforeMs: number }): Promise<boolean> {
  return (await tx.run(allow, input)).changes > 0;
}
