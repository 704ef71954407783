import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, type OperationCall, query } from '../../../../kernel/db/operation.ts';

export interface AuthorizationRow {
  readonly server: string;
  readonly version: string;
  readonly sealed: string;
  readonly principalId: string;
  readonly authorizedAtMs: number;
}

export interface FlowRow {
  readonly stateDigest: string;
  readonly server: string;
  readonly sealed: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly createdAtMs: number;
}

const authorizationColumns = ['server', 'version', 'sealed', 'principalId', 'authorizedAtMs'] as const;
const flowColumns = ['stateDigest', 'server', 'sealed', 'principalId', 'tokenId', 'createdAtMs'] as const;

const allAuthorizations = query<object, AuthorizationRow>(({ db }) =>
  db.selectFrom('mcpAuthorization').select(authorizationColumns).orderBy('server'),
);
const allFlows = query<object, FlowRow>(({ db }) => db.selectFrom('mcpAuthorizationFlow').select(flowColumns).orderBy('createdAtMs'));

export const listAuthorizations = operation('mcp.listAuthorizations', async (tx) => ({
  authorizations: await tx.all(allAuthorizations, {}),
  flows: await tx.all(allFlows, {}),
}));

interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}
const forgetFlows = query<Window>(({ db, p }) =>
  // A flow of the future began before the clock was corrected.
  db.deleteFrom('mcpAuthorizationFlow').where((eb) => eb.or([eb('createdAtMs', '<=', p('fromMs')), eb('createdAtMs', '>', p('toMs'))])),
);
const forgetExcess = query<{ readonly server: string; readonly kept: number }>(({ db, sql, p }) =>
  db.deleteFrom('mcpAuthorizationFlow').where(
    sql<boolean>`state_digest in (select state_digest from mcp_authorization_flow where server = ${p('server')}
        order by created_at_ms desc, state_digest limit 1000 offset ${p('kept', 'integer')})`,
  ),
);
const insertFlow = query<FlowRow>(({ db, each }) => db.insertInto('mcpAuthorizationFlow').values(each(flowColumns)));

/** Stores a flow, instead of the oldest one of its server when that has too many, and deletes those that are over. */
export const openFlow = operation(
  'mcp.openFlow',
  async (tx, input: { readonly row: FlowRow; readonly alive: Window; readonly maxPerServer: number; readonly audit: AuditRow }): Promise<void> => {
    await tx.run(forgetFlows, input.alive);
    await tx.run(forgetExcess, { server: input.row.server, kept: input.maxPerServer - 1 });
    await tx.run(insertFlow, input.row);
    await appendAudit(tx, input.audit);
  },
);

const findFlow = query<{ readonly stateDigest: string }, FlowRow>(({ db, p }) =>
  db.selectFrom('mcpAuthorizationFlow').select(flowColumns).where('stateDigest', '=', p('stateDigest')),
);
const deleteFlow = query<{ readonly stateDigest: string }>(({ db, p }) =>
  db.deleteFrom('mcpAuthorizationFlow').where('stateDigest', '=', p('stateDigest')),
);

/** Returns a flow and deletes it: its state is valid once. */
export const takeFlow = operation('mcp.takeFlow', async (tx, input: { readonly stateDigest: string }): Promise<FlowRow | undefined> => {
  const found = await tx.get(findFlow, input);
  // Of two that found it, one deletes it.
  return found !== undefined && (await tx.run(deleteFlow, input)).changes === 1 ? found : undefined;
});

const upsert = query<AuthorizationRow>(({ db, each }) =>
  db
    .insertInto('mcpAuthorization')
    .values(each(authorizationColumns))
    .onConflict((conflict) =>
      conflict.column('server').doUpdateSet((eb) => ({
        version: eb.ref('excluded.version'),
        sealed: eb.ref('excluded.sealed'),
        principalId: eb.ref('excluded.principalId'),
        authorizedAtMs: eb.ref('excluded.authorizedAtMs'),
      })),
    ),
);

export const saveAuthorization = operation(
  'mcp.saveAuthorization',
  async (tx, input: { readonly row: AuthorizationRow; readonly audit: AuditRow }): Promise<void> => {
    await tx.run(upsert, input.row);
    await appendAudit(tx, input.audit);
  },
);

interface Renewal {
  readonly server: string;
  readonly expected: string;
  readonly version: string;
  readonly sealed: string;
}
const renew = query<Renewal>(({ db, p }) =>
  db
    .updateTable('mcpAuthorization')
    .set({ version: p('version'), sealed: p('sealed') })
    .where('server', '=', p('server'))
    .where('version', '=', p('expected')),
);

/** Replaces the tokens of an authorization; returns false when it was changed or deleted meanwhile. */
export const renewAuthorization = operation(
  'mcp.renewAuthorization',
  async (tx, input: Renewal): Promise<boolean> => (await tx.run(renew, input)).changes === 1,
);

interface Version {
  readonly server: string;
  readonly version: string;
}
const deleteVersion = query<Version>(({ db, p }) =>
  db.deleteFrom('mcpAuthorization').where('server', '=', p('server')).where('version', '=', p('version')),
);

/** Deletes an authorization that is no longer valid, and alerts its owner with it; returns false when it was changed meanwhile. */
export const loseAuthorization = operation(
  'mcp.loseAuthorization',
  async (tx, { alert, server, version }: Version & { readonly alert: OperationCall }): Promise<boolean> => {
    if ((await tx.run(deleteVersion, { server, version })).changes === 0) return false;
    await tx.call(alert);
    return true;
  },
);

/** Delivers an alert alone; returns what its delivery did. */
export const alertAboutServer = operation('mcp.alert', async (tx, { call }: { readonly call: OperationCall }): Promise<unknown> => tx.call(call));

const deleteByServer = query<{ readonly server: string }>(({ db, p }) => db.deleteFrom('mcpAuthorization').where('server', '=', p('server')));
const deleteFlowsOf = query<{ readonly server: string }>(({ db, p }) => db.deleteFrom('mcpAuthorizationFlow').where('server', '=', p('server')));

/** Deletes the authorization of a server and the flows that would bring it back. */
export const deleteAuthorization = operation(
  'mcp.deleteAuthorization',
  async (tx, { server, audit }: { readonly server: string; readonly audit: AuditRow }): Promise<void> => {
    await tx.run(deleteFlowsOf, { server });
    await tx.run(deleteByServer, { server });
    await appendAudit(tx, audit);
  },
);

export const authorizationOperations = [
  listAuthorizations,
  openFlow,
  takeFlow,
  saveAuthorization,
  renewAuthorization,
  loseAuthorization,
  alertAboutServer,
  deleteAuthorization,
];
