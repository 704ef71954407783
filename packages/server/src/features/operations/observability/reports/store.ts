import { operation, query } from '../../../../kernel/db/operation.ts';
import type { ResetName } from './tables.ts';

const refsOfKey = query<{ sessionKey: string }, { conversationRef: string }>(({ db, p }) =>
  db
    .selectFrom('turn')
    .select('conversationRef')
    .where('sessionKey', '=', p('sessionKey'))
    .union(db.selectFrom('conversation').select('ref as conversationRef').where('sessionKey', '=', p('sessionKey'))),
);

/** Returns the conversations that have, or had, a session key. Reads all turns: turns outlive their conversation, and have no index of keys. */
export const conversationsOfKey = operation('obs.conversationsOfKey', async (tx, input: { readonly sessionKey: string }): Promise<string[]> =>
  (await tx.all(refsOfKey, input)).map(({ conversationRef }) => conversationRef),
);

const resets = query<object, { name: ResetName; atMs: number }>(({ db }) => db.selectFrom('obsReset').select(['name', 'atMs']));

/** Returns when each kind of observability data was last reset. */
export const readResets = operation('obs.resets', async (tx): Promise<{ readonly name: ResetName; readonly atMs: number }[]> => tx.all(resets, {}));

export const reportOperations = [conversationsOfKey, readResets];
