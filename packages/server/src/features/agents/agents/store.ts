import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query } from '../../../kernel/db/operation.ts';

/** State of an agent. Its configuration is in config.yaml; rows of earlier versions hold overrides of the entry (`file`) or all of it (`stored`). */
export interface AgentRow {
  readonly id: string;
  readonly source: 'stored' | 'file';
  readonly configJson: string;
  readonly suspended: number;
}

const all = query<object, AgentRow>(({ db }) => db.selectFrom('agent').select(['id', 'source', 'configJson', 'suspended']).orderBy('id'));

export const listAgents = operation('agents.list', async (tx): Promise<AgentRow[]> => tx.all(all, {}));

interface Suspension {
  readonly id: string;
  readonly suspended: number;
  readonly atMs: number;
}

const upsert = query<Suspension>(({ db, sql, each, p }) =>
  db
    .insertInto('agent')
    .values({
      ...each(['id', 'suspended']),
      source: sql<AgentRow['source']>`'file'`,
      configJson: sql<string>`'{}'`,
      createdAtMs: p('atMs'),
      updatedAtMs: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({ suspended: sql<number>`excluded.suspended`, updatedAtMs: sql<number>`excluded.updated_at_ms` }),
    ),
);

/** Records whether an agent is suspended. */
export const saveAgent = operation('agents.save', async (tx, { audit, ...suspension }: Suspension & { readonly audit: AuditRow }): Promise<void> => {
  await tx.run(upsert, suspension);
  await appendAudit(tx, audit);
});

const clear = query<{ id: string }>(({ db, sql, p }) =>
  db
    .updateTable('agent')
    .set({ source: sql<AgentRow['source']>`'file'`, configJson: sql<string>`'{}'` })
    .where('id', '=', p('id')),
);

/** Records that config.yaml has the configuration that a row of an earlier version held. */
export const clearAgentConfig = operation('agents.clear', async (tx, { id }: { readonly id: string }): Promise<void> => {
  await tx.run(clear, { id });
});

const remove = query<{ id: string }>(({ db, p }) => db.deleteFrom('agent').where('id', '=', p('id')));

/** Deletes what is stored about an agent, so that a new one of its id begins without it. */
export const deleteAgent = operation('agents.delete', async (tx, { id }: { readonly id: string }): Promise<void> => {
  await tx.run(remove, { id });
});

export const agentOperations = [listAgents, saveAgent, clearAgentConfig, deleteAgent];
