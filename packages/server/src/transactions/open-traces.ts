import type { OpenTraces } from '../features/operations/traces/prune-store.ts';
import { operation, query } from '../kernel/db/operation.ts';

const most = 5_000;

const roots = query<object, { id: string }>(({ db, sql }) =>
  db
    .selectFrom('rootRun')
    .select('id')
    .where(sql<boolean>`state = 'active'`)
    .limit(most),
);

const turns = query<object, { id: string }>(({ db }) => db.selectFrom('durableTurn').select('turnId as id').limit(most));

/** Returns the work that is not over: active root runs, and turns that another process can continue, such as those with a pending approval. */
export const findOpenTraces = operation('traces.open', async (tx): Promise<OpenTraces> => {
  const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
  return { roots: idsOf(await tx.all(roots, {})), turns: idsOf(await tx.all(turns, {})) };
});
