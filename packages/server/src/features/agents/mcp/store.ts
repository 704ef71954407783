import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query } from '../../../kernel/db/operation.ts';

export interface McpServerRow {
  readonly name: string;
  readonly transport: string;
  readonly url: string;
  readonly headersSealed: string;
  readonly agentsJson: string | null;
  readonly enabled: number;
  readonly createdAtMs: number;
}

const serverColumns = ['name', 'transport', 'url', 'headersSealed', 'agentsJson', 'enabled', 'createdAtMs'] as const;

const allServers = query<object, McpServerRow>(({ db }) => db.selectFrom('mcpServer').select(serverColumns).orderBy('name'));

export const listMcpServers = operation('mcp.list', async (tx): Promise<McpServerRow[]> => tx.all(allServers, {}));

const upsert = query<McpServerRow>(({ db, each }) =>
  db
    .insertInto('mcpServer')
    .values(each(serverColumns))
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((eb) => ({
        transport: eb.ref('excluded.transport'),
        url: eb.ref('excluded.url'),
        headersSealed: eb.ref('excluded.headersSealed'),
        agentsJson: eb.ref('excluded.agentsJson'),
        enabled: eb.ref('excluded.enabled'),
      })),
    ),
);

export const saveMcpServer = operation('mcp.save', async (tx, input: { readonly row: McpServerRow; readonly audit: AuditRow }): Promise<void> => {
  await tx.run(upsert, input.row);
  await appendAudit(tx, input.audit);
});

const setEnabled = query<{ readonly name: string; readonly enabled: number }>(({ db, p }) =>
  db
    .updateTable('mcpServer')
    .set({ enabled: p('enabled') })
    .where('name', '=', p('name')),
);

/** Stores whether a server is connected when the daemon starts; one of config.yaml has no row, so only the audit row is written. */
export const enableMcpServer = operation(
  'mcp.enable',
  async (tx, input: { readonly name: string; readonly enabled: number; readonly audit: AuditRow }): Promise<void> => {
    await tx.run(setEnabled, { name: input.name, enabled: input.enabled });
    await appendAudit(tx, input.audit);
  },
);

const remove = query<{ readonly name: string }>(({ db, p }) => db.deleteFrom('mcpServer').where('name', '=', p('name')));

export const deleteMcpServer = operation('mcp.delete', async (tx, input: { readonly name: string; readonly audit: AuditRow }): Promise<void> => {
  await tx.run(remove, { name: input.name });
  await appendAudit(tx, input.audit);
});

export const mcpOperations = [listMcpServers, saveMcpServer, enableMcpServer, deleteMcpServer];
