import type { AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query } from '../../../kernel/db/operation.ts';

export interface AuditFilter {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly action: string | null;
  readonly classification: AuditRow['classification'] | null;
  readonly outcome: AuditRow['outcome'] | null;
  readonly target: string | null;
  /** A row must match all of these. */
  readonly principalIds: readonly string[];
  /** Rows that were written before this one. */
  readonly before: string | null;
  readonly limit: number;
}

export interface StoredAudit extends Omit<AuditRow, 'metadata' | 'target'> {
  readonly target: string | null;
  readonly metadataJson: string | null;
}

const seqOf = query<{ id: string }, { seq: number }>(({ db, p }) => db.selectFrom('audit').select('seq').where('id', '=', p('id')));

/** Returns one page, newest first, and whether there is more; undefined when there is no row `before`. */
export const queryAudit = operation(
  'audit.query',
  async (tx, filter: AuditFilter): Promise<{ readonly rows: readonly StoredAudit[]; readonly hasMore: boolean } | undefined> => {
    const before = filter.before === null ? undefined : await tx.get(seqOf, { id: filter.before });
    if (filter.before !== null && before === undefined) return undefined;
    const rows = await tx.build<StoredAudit>((db) => {
      let found = db
        .selectFrom('audit')
        .select(['id', 'atMs', 'principalId', 'action', 'classification', 'outcome', 'target', 'metadataJson', 'traceId']);
      if (before !== undefined) found = found.where('seq', '<', before.seq);
      if (filter.fromMs !== null) found = found.where('atMs', '>=', filter.fromMs);
      if (filter.toMs !== null) found = found.where('atMs', '<', filter.toMs);
      if (filter.action !== null) found = found.where('action', '=', filter.action);
      if (filter.classification !== null) found = found.where('classification', '=', filter.classification);
      if (filter.outcome !== null) found = found.where('outcome', '=', filter.outcome);
      if (filter.target !== null) found = found.where('target', '=', filter.target);
      for (const principalId of filter.principalIds) found = found.where('principalId', '=', principalId);
      return found.orderBy('seq', 'desc').limit(filter.limit + 1);
    });
    return { rows: rows.slice(0, filter.limit), hasMore: rows.length > filter.limit };
  },
);

const old = query<{ beforeMs: number; limit: number }, { seq: number }>(({ db, p }) =>
  db.selectFrom('audit').select('seq').where('atMs', '<', p('beforeMs')).orderBy('atMs').limit(p('limit')),
);

/** Deletes some audit rows of before a time; returns how many. */
export const pruneAudit = operation('audit.prune', async (tx, input: { readonly beforeMs: number; readonly limit: number }): Promise<number> => {
  const seqs = (await tx.all(old, input)).map(({ seq }) => seq);
  if (seqs.length > 0) await tx.build((db) => db.deleteFrom('audit').where('seq', 'in', seqs));
  return seqs.length;
});

const oldest = query<object, { atMs: number }>(({ db }) => db.selectFrom('audit').select('atMs').orderBy('atMs').limit(1));

/** Returns the time of the oldest audit row that is kept. */
export const oldestAudit = operation('audit.oldest', async (tx): Promise<number | undefined> => (await tx.get(oldest, {}))?.atMs);

export const auditOperations = [queryAudit, pruneAudit, oldestAudit];
