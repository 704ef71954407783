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

const allServers = query<object, McpServerRow>(({ db }) =>
  db
    .selectFrom('mcp_server')
    .select(['name', 'transport', 'url', 'headers_sealed as headersSealed', 'agents_json as agentsJson', 'enabled', 'created_at_ms as createdAtMs'])
    .orderBy('name'),
);

export const listMcpServers = operation('mcp.list', async (tx): Promise<McpServerRow[]> => tx.all(allServers, {}));

const upsert = query<McpServerRow>(({ db, p }) =>
  db
    .insertInto('mcp_server')
    .values({
      name: p('name'),
      transport: p('transport'),
      url: p('url'),
      headers_sealed: p('headersSealed'),
      agents_json: p('agentsJson'),
      enabled: p('enabled'),
      created_at_ms: p('createdAtMs'),
    })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((eb) => ({
        transport: eb.ref('excluded.transport'),
        url: eb.ref('excluded.url'),
        headers_sealed: eb.ref('excluded.headers_sealed'),
        agents_json: eb.ref('excluded.agents_json'),
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
    .updateTable('mcp_server')
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

const remove = query<{ readonly name: string }>(({ db, p }) => db.deleteFrom('mcp_server').where('name', '=', p('name')));

export const deleteMcpServer = operation('mcp.delete', async (tx, input: { readonly name: string; readonly audit: AuditRow }): Promise<void> => {
  await tx.run(remove, { name: input.name });
  await appendAudit(tx, input.audit);
});

export const mcpOperations = [listMcpServers, saveMcpServer, enableMcpServer, deleteMcpServer];
