import { operation, query } from '../../../../kernel/db/operation.ts';

export interface Realigned {
  readonly id: string;
  readonly revision: number;
  readonly nextRunAtMs: number;
  readonly dueAtMs: number | null;
  readonly highWaterMs: number;
}

const move = query<Realigned>(({ db, sql, p }) =>
  db
    .updateTable('cronJob')
    .set({ nextRunAtMs: p('nextRunAtMs'), dueAtMs: p('dueAtMs'), highWaterMs: p('highWaterMs'), revision: sql<number>`revision + 1` })
    .where('id', '=', p('id'))
    .where('revision', '=', p('revision')),
);

/** Moves the next runs of jobs that were not changed concurrently; returns their number. */
export const realignJobs = operation('cron.realign', async (tx, { changes }: { readonly changes: readonly Realigned[] }): Promise<number> => {
  let moved = 0;
  for (const change of changes) moved += (await tx.run(move, change)).changes;
  return moved;
});
