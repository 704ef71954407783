import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { ofDeadBoot, whileLive } from '../../../../kernel/owners.ts';
import { takenOver } from '../store.ts';

/** A message that a running turn has taken, until the turn is stored with it. */
export interface TurnMessageRow {
  readonly id: string;
  readonly turnId: string;
  /** The boot that runs the turn. */
  readonly bootId: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly text: string;
  readonly atMs: number;
}

const columns = ['id', 'turnId', 'bootId', 'conversationRef', 'sessionKey', 'agentId', 'principalId', 'text', 'atMs'] as const;

const isOver = query<{ turnId: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('turn').select('id').where('id', '=', p('turnId')).where('endedAtMs', 'is not', null),
);

const insertWhileLive = query<TurnMessageRow>(({ db, sql, p, each }) =>
  db
    .insertInto('turnMessage')
    .columns(columns)
    .expression(
      db.selectNoFrom(Object.entries(each(columns)).map(([name, value]) => sql`${value}`.as(name))).where(whileLive({ db, sql }, p('bootId'))),
    ),
);

/** Stores a message that a turn has taken, unless the turn is already stored with it. */
export const keepTurnMessage = operation(
  'turns.keepMessage',
  async (tx, input: TurnMessageRow): Promise<void> => {
    if ((await tx.get(isOver, { turnId: input.turnId })) !== undefined) return;
    if ((await tx.run(insertWhileLive, input)).changes === 0) throw takenOver();
  },
  // The end of the turn is written after it.
  { orderKey: ({ conversationRef }) => conversationRef },
);

const removeOf = query<{ turnId: string }>(({ db, p }) => db.deleteFrom('turnMessage').where('turnId', '=', p('turnId')));

/** Removes the messages of a turn, which is stored with them. Commits with the turn. */
export const dropTurnMessages = operation('turns.dropMessages', (tx, { turnId }: { readonly turnId: string }): Promise<void> =>
  removeTurnMessages(tx, turnId),
);

const removeIn = query<{ conversationRef: string }>(({ db, p }) => db.deleteFrom('turnMessage').where('conversationRef', '=', p('conversationRef')));

/** Removes messages of turns that could not be stored. Part of `deleteConversation` and `resetConversation`. */
export async function forgetTurnMessages(tx: Tx, input: { readonly conversationRef: string }): Promise<void> {
  await tx.run(removeIn, input);
}

const left = query<object, TurnMessageRow>(({ db, sql }) =>
  db.selectFrom('turnMessage').select(columns).where(ofDeadBoot(sql, 'turn_message.boot_id')).orderBy('id'),
);

/** Reads the messages of turns that died with their process, oldest first. */
export const leftTurnMessages = (tx: Tx): Promise<readonly TurnMessageRow[]> => tx.all(left, {});

/** Removes the messages of one turn. */
export async function removeTurnMessages(tx: Tx, turnId: string): Promise<void> {
  await tx.run(removeOf, { turnId });
}

export const turnMessageOperations = [keepTurnMessage, dropTurnMessages];
