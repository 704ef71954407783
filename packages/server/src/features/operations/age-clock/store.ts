import { operation, query } from '../../../kernel/db/operation.ts';

export interface KnownTime {
  /** Last known time for ages. */
  readonly atMs: number;
  /** How long the daemon has run while the clock was doubted; 0 when it was not. */
  readonly doubtedMs: number;
}

const get = query<object, KnownTime>(({ db }) => db.selectFrom('ageClock').select(['atMs', 'doubtedMs']));
const put = query<KnownTime>(({ db, p }) =>
  db
    .insertInto('ageClock')
    .values({ id: 1, atMs: p('atMs'), doubtedMs: p('doubtedMs') })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ atMs: p('atMs'), doubtedMs: p('doubtedMs') })),
);

/** Undefined in a new home. */
export const readKnownTime = operation('ageClock.read', async (tx) => tx.get(get, {}));

export const keepKnownTime = operation('ageClock.keep', async (tx, known: KnownTime): Promise<void> => {
  await tx.run(put, known);
});

export const ageClockOperations = [readKnownTime, keepKnownTime];
