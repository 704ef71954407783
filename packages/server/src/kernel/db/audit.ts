import type { Generated } from 'kysely';
import type { Migration, Tx } from './operation.ts';
import { query } from './operation.ts';

/** Rows of `audit`. */
interface AuditTable {
  readonly seq: Generated<number>;
  readonly id: string;
  readonly atMs: number;
  readonly principalId: string;
  readonly action: string;
  readonly classification: AuditRow['classification'];
  readonly outcome: AuditRow['outcome'];
  readonly target: string | null;
  readonly metadataJson: string | null;
  readonly traceId: string;
}

declare module './tables.ts' {
  interface Tables {
    readonly audit: AuditTable;
  }
}

/** One security-relevant decision or change (`audit:event`); written in the transaction of the change itself. */
export interface AuditRow {
  /** `au_<uuid>` */
  readonly id: string;
  readonly atMs: number;
  readonly principalId: string;
  readonly action: string;
  readonly classification: 'read' | 'mutate' | 'destructive' | 'security';
  readonly outcome: 'success' | 'failure' | 'denied';
  readonly target?: string | undefined;
  /** Names and counts only, never values of secrets. */
  readonly metadata?: Readonly<Record<string, string | number | boolean | string[]>> | undefined;
  readonly traceId: string;
}

const insertAudit = query<Omit<AuditRow, 'metadata'> & { readonly metadataJson: string | null }>(({ db, each }) =>
  db.insertInto('audit').values(each(['id', 'atMs', 'principalId', 'action', 'classification', 'outcome', 'target', 'metadataJson', 'traceId'])),
);

/** Runs as part of the operation that makes the change, so that neither exists without the other. */
export async function appendAudit(tx: Tx, row: AuditRow): Promise<void> {
  const { metadata, ...rest } = row;
  await tx.run(insertAudit, { ...rest, metadataJson: metadata === undefined ? null : JSON.stringify(metadata) });
}

export const auditMigrations: readonly Migration[] = [
  {
    id: '001-audit',
    up: [
      `CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        at_ms INTEGER NOT NULL,
        principal_id TEXT NOT NULL,
        action TEXT NOT NULL,
        classification TEXT NOT NULL,
        outcome TEXT NOT NULL,
        target TEXT,
        metadata_json TEXT,
        trace_id TEXT NOT NULL
      )`,
      `CREATE INDEX audit_by_time ON audit (at_ms)`,
    ],
  },
];
