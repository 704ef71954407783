import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import { encodeTags } from '../reading/tags.ts';
import { type ConversationRow, lockConversation } from '../store.ts';

export interface Labels {
  readonly ref: string;
  /** Null returns to the beginning of the first message. */
  readonly name?: string | null | undefined;
  readonly shelf?: ConversationRow['shelf'] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly audit: AuditRow;
}

const label = query<Pick<ConversationRow, 'id' | 'name' | 'shelf' | 'tags'>>(({ db, each, p }) =>
  db
    .updateTable('conversation')
    .set(each(['name', 'shelf', 'tags']))
    .where('id', '=', p('id')),
);

/** Names a conversation, tags, pins or archives it; what is absent stays. Throws `precondition_failed` before its first turn is stored. */
export const labelConversation = operation('sessions.label', async (tx, { ref, name, shelf, tags, audit }: Labels): Promise<ConversationRow> => {
  const row = await lockConversation(tx, ref);
  if (row === undefined) throw new AppError('precondition_failed', 'The conversation is not stored yet: its first turn has not ended');
  const labelled = {
    ...row,
    name: name === undefined ? row.name : name,
    shelf: shelf ?? row.shelf,
    tags: tags === undefined ? row.tags : encodeTags(tags),
  };
  await tx.run(label, { id: row.id, name: labelled.name, shelf: labelled.shelf, tags: labelled.tags });
  await appendAudit(tx, audit);
  return labelled;
});

export interface SuggestedName extends Pick<ConversationRow, 'ref' | 'resetCount' | 'createdAtMs'> {
  readonly name: string;
}

const suggest = query<SuggestedName>(({ db, p }) =>
  db
    .updateTable('conversation')
    .set({ name: p('name') })
    .where('ref', '=', p('ref'))
    .where('name', 'is', null)
    .where('resetCount', '=', p('resetCount'))
    .where('createdAtMs', '=', p('createdAtMs')),
);

/** Names a conversation that has no name and whose texts were neither cleared nor deleted since its row was read. Returns whether it did. */
export const suggestName = operation(
  'sessions.suggestName',
  async (tx, input: SuggestedName): Promise<boolean> => (await tx.run(suggest, input)).changes > 0,
);

export const labelOperations = [labelConversation, suggestName];
