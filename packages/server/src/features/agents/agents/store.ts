import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type QueryTools } from '../../../kernel/db/operation.ts';

/** `stored`: the whole configuration. `file`: overrides of the entry in config.yaml. */
export interface AgentRow {
  readonly id: string;
  readonly source: 'stored' | 'file';
  readonly configJson: string;
  readonly suspended: number;
}

const all = query<object, AgentRow>(({ db }) => db.selectFrom('agent').select(['id', 'source', 'configJson', 'suspended']).orderBy('id'));

export const listAgents = operation('agents.list', async (tx): Promise<AgentRow[]> => tx.all(all, {}));

type Change = AgentRow & { readonly atMs: number };

function insertRow({ db, each, p }: Pick<QueryTools<Change>, 'db' | 'each' | 'p'>) {
  return db.insertInto('agent').values({ ...each(['id', 'source', 'configJson', 'suspended']), createdAtMs: p('atMs'), updatedAtMs: p('atMs') });
}

/** Deletes overrides of a file entry that no longer exists, so that its id is free. */
const insert = query<Change>(({ db, sql, each, p }) =>
  insertRow({ db, each, p }).onConflict((conflict) =>
    conflict
      .column('id')
      .doUpdateSet({
        source: sql<AgentRow['source']>`excluded.source`,
        configJson: sql<string>`excluded.config_json`,
        suspended: sql<number>`excluded.suspended`,
        createdAtMs: sql<number>`excluded.created_at_ms`,
        updatedAtMs: sql<number>`excluded.updated_at_ms`,
      })
      .where('agent.source', '=', 'file'),
  ),
);

export const insertAgent = operation('agents.insert', async (tx, input: Change & { readonly audit: AuditRow }): Promise<void> => {
  const { changes } = await tx.run(insert, input);
  if (changes === 0) throw new AppError('conflict', `Agent already exists: ${input.id}`);
  await appendAudit(tx, input.audit);
});

const upsert = query<Change>(({ db, sql, each, p }) =>
  insertRow({ db, each, p }).onConflict((conflict) =>
    conflict.column('id').doUpdateSet({
      configJson: sql<string>`excluded.config_json`,
      suspended: sql<number>`excluded.suspended`,
      updatedAtMs: sql<number>`excluded.updated_at_ms`,
    }),
  ),
);

export const saveAgent = operation('agents.save', async (tx, input: Change & { readonly audit: AuditRow }): Promise<void> => {
  await tx.run(upsert, input);
  await appendAudit(tx, input.audit);
});

const remove = query<{ id: string }>(({ db, p }) => db.deleteFrom('agent').where('id', '=', p('id')).where('source', '=', 'stored'));

export const deleteAgent = operation('agents.delete', async (tx, input: { readonly id: string; readonly audit: AuditRow }): Promise<void> => {
  const { changes } = await tx.run(remove, { id: input.id });
  if (changes === 0) throw new AppError('not_found', `Agent not found: ${input.id}`);
  await appendAudit(tx, input.audit);
});

export const agentOperations = [listAgents, insertAgent, saveAgent, deleteAgent];
