import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query } from '../../../kernel/db/operation.ts';

export interface PromptRow {
  readonly name: string;
  readonly text: string;
  readonly updatedAtMs: number;
}

interface OfOwner {
  readonly principalId: string;
}

/** How many prompts an owner has. */
const maxPrompts = 200;

const ofOwner = query<OfOwner, PromptRow>(({ db, p }) =>
  db.selectFrom('savedPrompt').select(['name', 'text', 'updatedAtMs']).where('principalId', '=', p('principalId')).orderBy('name'),
);

export const listPrompts = operation('prompts.list', (tx, { principalId }: OfOwner): Promise<PromptRow[]> => tx.all(ofOwner, { principalId }));

const upsert = query<OfOwner & PromptRow>(({ db, sql, each }) =>
  db
    .insertInto('savedPrompt')
    .values(each(['principalId', 'name', 'text', 'updatedAtMs']))
    .onConflict((conflict) =>
      conflict.columns(['principalId', 'name']).doUpdateSet({ text: sql<string>`excluded.text`, updatedAtMs: sql<number>`excluded.updated_at_ms` }),
    ),
);
const count = query<OfOwner, { total: number }>(({ db, sql, p }) =>
  db
    .selectFrom('savedPrompt')
    .select(sql<number>`count(*)`.as('total'))
    .where('principalId', '=', p('principalId')),
);

/** Saves or replaces a prompt. Throws `precondition_failed` beyond the limit. */
export const savePrompt = operation(
  'prompts.save',
  async (tx, { audit, ...row }: OfOwner & PromptRow & { readonly audit: AuditRow }): Promise<void> => {
    await tx.run(upsert, row);
    const { total } = (await tx.get(count, { principalId: row.principalId })) ?? { total: 0 };
    if (total > maxPrompts) throw new AppError('precondition_failed', `A person has at most ${maxPrompts} prompts; delete one first`);
    await appendAudit(tx, audit);
  },
);

const remove = query<OfOwner & Pick<PromptRow, 'name'>>(({ db, p }) =>
  db.deleteFrom('savedPrompt').where('principalId', '=', p('principalId')).where('name', '=', p('name')),
);

/** Deletes a prompt; returns whether there was one. */
export const deletePrompt = operation(
  'prompts.delete',
  async (tx, { audit, ...which }: OfOwner & Pick<PromptRow, 'name'> & { readonly audit: AuditRow }): Promise<boolean> => {
    if ((await tx.run(remove, which)).changes === 0) return false;
    await appendAudit(tx, audit);
    return true;
  },
);

export const promptOperations = [listPrompts, savePrompt, deletePrompt];
