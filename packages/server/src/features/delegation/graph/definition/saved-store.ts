import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import { AppError } from '../../../../kernel/app-error.ts';

/** A saved graph. */
export interface SavedRow {
  /** `sg_<uuid>` */
  readonly id: string;
  readonly principalId: string;
  /** The agent that it belongs to; null when it belongs only to its owner. */
  readonly agentId: string | null;
  readonly label: string;
  readonly definitionJson: string;
  readonly nodeCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Null means all; an agent sees no graphs of other agents, and changes only its own. */
export interface SavedReach {
  readonly principalId: string | null;
  readonly agentId: string | null;
  /** The agents of the token. */
  readonly agentIds: readonly string[] | null;
  readonly isChange: boolean;
}

const columns = ['id', 'principalId', 'agentId', 'label', 'definitionJson', 'nodeCount', 'createdAtMs', 'updatedAtMs'] as const;

/** Maximum of saved graphs per owner. */
const maxSaved = 500;

const insert = query<SavedRow>(({ db, each }) => db.insertInto('savedGraph').values(each(columns)));
const replace = query<Pick<SavedRow, 'id' | 'agentId' | 'label' | 'definitionJson' | 'nodeCount' | 'updatedAtMs'>>(({ db, sql, p }) =>
  db
    .updateTable('savedGraph')
    .set({
      agentId: sql<string>`coalesce(${p('agentId')}, agent_id)`,
      label: p('label'),
      definitionJson: p('definitionJson'),
      nodeCount: p('nodeCount'),
      updatedAtMs: p('updatedAtMs'),
    })
    .where('id', '=', p('id')),
);
const count = query<{ principalId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('savedGraph')
    .select(sql<number>`count(*)`.as('count'))
    .where('principalId', '=', p('principalId')),
);
const remove = query<{ id: string }>(({ db, p }) => db.deleteFrom('savedGraph').where('id', '=', p('id')));

export const findSaved = operation(
  'graph.findSaved',
  async (tx, { id, principalId, agentId, agentIds, isChange }: SavedReach & { readonly id: string }): Promise<SavedRow | undefined> => {
    const [row] = await tx.build<SavedRow>((db) => {
      let from = db.selectFrom('savedGraph').select(columns).where('id', '=', id);
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where((where) => where.or([where('agentId', 'is', null), where('agentId', 'in', agentIds)]));
      return from;
    });
    const isForeign = agentId !== null && row?.agentId !== agentId && (isChange || row?.agentId !== null);
    return isForeign ? undefined : row;
  },
);

const byLabel = query<{ principalId: string; agentId: string; label: string }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('savedGraph')
    .select('id')
    .where('principalId', '=', p('principalId'))
    .where('agentId', '=', p('agentId'))
    .where('label', '=', p('label'))
    .limit(1),
);

/** Finds the graph that an agent saved under a name before. */
export const findSavedLabel = operation(
  'graph.findSavedLabel',
  async (tx, input: { readonly principalId: string; readonly agentId: string; readonly label: string }): Promise<string | undefined> =>
    (await tx.get(byLabel, input))?.id,
);

/** Saves a graph; replaces a row with the same id. */
export const saveGraph = operation(
  'graph.save',
  async (tx, { row, isNew, audit }: { readonly row: SavedRow; readonly isNew: boolean; readonly audit: AuditRow }): Promise<boolean> => {
    if (isNew) {
      if (((await tx.get(count, { principalId: row.principalId }))?.count ?? 0) >= maxSaved)
        throw new AppError('precondition_failed', `${maxSaved} graphs are saved, which is the limit; delete some`);
      await tx.run(insert, row);
    } else {
      const { id, agentId, label, definitionJson, nodeCount, updatedAtMs } = row;
      if ((await tx.run(replace, { id, agentId, label, definitionJson, nodeCount, updatedAtMs })).changes === 0) return false;
    }
    await appendAudit(tx, audit);
    return true;
  },
);

export const deleteSaved = operation(
  'graph.deleteSaved',
  async (tx, { id, audit }: { readonly id: string; readonly audit: AuditRow }): Promise<boolean> => {
    if ((await tx.run(remove, { id })).changes === 0) return false;
    await appendAudit(tx, audit);
    return true;
  },
);

/** Lists a page, sorted by name. */
export const listSaved = operation(
  'graph.listSaved',
  async (
    tx,
    { principalId, agentId, agentIds, offset, limit }: Omit<SavedReach, 'isChange'> & { readonly offset: number; readonly limit: number },
  ): Promise<{ readonly rows: SavedRow[]; readonly total: number }> => {
    const rows = await tx.build<SavedRow & { readonly total: number }>((db, sql) => {
      let from = db.selectFrom('savedGraph').select([...columns, sql<number>`count(*) over ()`.as('total')]);
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentId !== null) from = from.where((where) => where.or([where('agentId', 'is', null), where('agentId', '=', agentId)]));
      if (agentIds !== null) from = from.where((where) => where.or([where('agentId', 'is', null), where('agentId', 'in', agentIds)]));
      return from.orderBy('label').orderBy('id').limit(limit).offset(offset);
    });
    if (rows.length > 0 || offset === 0) return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
    const [all] = await tx.build<{ total: number }>((db, sql) => {
      let from = db.selectFrom('savedGraph').select(sql<number>`count(*)`.as('total'));
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentId !== null) from = from.where((where) => where.or([where('agentId', 'is', null), where('agentId', '=', agentId)]));
      if (agentIds !== null) from = from.where((where) => where.or([where('agentId', 'is', null), where('agentId', 'in', agentIds)]));
      return from;
    });
    return { rows: [], total: all?.total ?? 0 };
  },
);

export const savedGraphOperations = [findSaved, findSavedLabel, saveGraph, deleteSaved, listSaved];
