import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';

export interface SecretRow {
  readonly name: string;
  readonly sealed: string;
  readonly provider: string | null;
  readonly description: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly lastUsedAtMs: number | null;
  readonly usageCount: number;
  readonly expiresAtMs: number | null;
}

/** A secret without the record of its use. */
export type NewSecret = Omit<SecretRow, 'lastUsedAtMs' | 'usageCount'>;

/** The limit of writes, counted over all daemons that share the database. */
export interface WriteLimit {
  readonly limit: number;
  readonly windowMs: number;
  /** The secrets that there may be. */
  readonly maxSecrets: number;
}

/** A write beyond the limit: nothing is stored. */
export interface TooManyWrites {
  readonly retryAfterMs: number;
}

const secretColumns = ['name', 'sealed', 'provider', 'description', 'createdAtMs', 'updatedAtMs', 'expiresAtMs'] as const;

const allSecrets = query<object, SecretRow>(({ db }) =>
  db
    .selectFrom('secret')
    .select([...secretColumns, 'lastUsedAtMs', 'usageCount'])
    .orderBy('name'),
);

/** The same for a connection without operations: that of a start whose configuration cannot be read without them. */
export const sealedSecrets = 'SELECT name, sealed FROM secret ORDER BY name';

/** Returns all secrets by name. */
export const listSecrets = operation('secrets.list', async (tx): Promise<SecretRow[]> => tx.all(allSecrets, {}));

const forgetWrites = query<{ readonly fromMs: number; readonly toMs: number }>(({ db, p }) =>
  db.deleteFrom('secretWrite').where((eb) => eb.or([eb('atMs', '<=', p('fromMs')), eb('atMs', '>', p('toMs'))])),
);
const countWrites = query<object, { readonly count: number; readonly firstMs: number | null }>(({ db }) =>
  db.selectFrom('secretWrite').select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.min<number | null>('atMs').as('firstMs')]),
);
const insertWrite = query<{ readonly id: string; readonly atMs: number }>(({ db, each }) =>
  db.insertInto('secretWrite').values(each(['id', 'atMs'])),
);

/** Counts a write, or returns the time until the next one is allowed. */
async function countWrite(tx: Tx, { id, atMs }: AuditRow, { limit, windowMs }: WriteLimit): Promise<number | undefined> {
  // A write of the future is that of another daemon, whose clock is a little ahead, or the clock was corrected since.
  await tx.run(forgetWrites, { fromMs: atMs - windowMs, toMs: atMs + windowMs });
  const { count = 0, firstMs } = (await tx.get(countWrites, {})) ?? {};
  if (count >= limit) return Math.max(1, (firstMs ?? atMs) + windowMs - atMs);
  await tx.run(insertWrite, { id, atMs });
  return undefined;
}

const findSecret = query<{ readonly name: string }, { readonly name: string }>(({ db, p }) =>
  db.selectFrom('secret').select('name').where('name', '=', p('name')),
);
const countSecrets = query<object, { readonly count: number }>(({ db }) =>
  db.selectFrom('secret').select((eb) => eb.fn.countAll<number>().as('count')),
);
const insertSecret = query<NewSecret>(({ db, sql, each }) =>
  db.insertInto('secret').values({ ...each(secretColumns), lastUsedAtMs: null, usageCount: sql<number>`0` }),
);
const replaceSecret = query<Omit<NewSecret, 'createdAtMs'>>(({ db, p }) =>
  db
    .updateTable('secret')
    .set((eb) => ({
      sealed: p('sealed'),
      provider: eb.fn.coalesce(p('provider', 'text'), 'provider'),
      description: eb.fn.coalesce(p('description', 'text'), 'description'),
      updatedAtMs: p('updatedAtMs'),
      expiresAtMs: p('expiresAtMs'),
    }))
    .where('name', '=', p('name')),
);

/** Creates or replaces a secret. A replaced one keeps its provider and its description unless new ones are given. */
export const setSecret = operation(
  'secrets.set',
  async (
    tx,
    input: { readonly row: NewSecret; readonly limit: WriteLimit; readonly audit: AuditRow },
  ): Promise<'created' | 'updated' | 'full' | TooManyWrites> => {
    const { row, limit, audit } = input;
    const found = await tx.get(findSecret, { name: row.name });
    if (found === undefined && ((await tx.get(countSecrets, {}))?.count ?? 0) >= limit.maxSecrets) return 'full';
    const retryAfterMs = await countWrite(tx, audit, limit);
    if (retryAfterMs !== undefined) return { retryAfterMs };
    const { createdAtMs: _, ...changed } = row;
    if (found === undefined) await tx.run(insertSecret, row);
    else await tx.run(replaceSecret, changed);
    await appendAudit(tx, audit);
    return found === undefined ? 'created' : 'updated';
  },
);

const deleteRow = query<{ readonly name: string }>(({ db, p }) => db.deleteFrom('secret').where('name', '=', p('name')));

/** Deletes a secret; `absent` when there is none, which counts as no write. */
export const removeSecret = operation(
  'secrets.remove',
  async (
    tx,
    input: { readonly name: string; readonly limit: WriteLimit; readonly audit: AuditRow },
  ): Promise<'deleted' | 'absent' | TooManyWrites> => {
    const { name, limit, audit } = input;
    if ((await tx.get(findSecret, { name })) === undefined) return 'absent';
    const retryAfterMs = await countWrite(tx, audit, limit);
    if (retryAfterMs !== undefined) return { retryAfterMs };
    await tx.run(deleteRow, { name });
    await appendAudit(tx, audit);
    return 'deleted';
  },
);

/** Inserts secrets that only the copy in the home folder has; returns the names of those that were inserted. */
export const importSecrets = operation(
  'secrets.import',
  async (tx, input: { readonly rows: readonly NewSecret[]; readonly audits: readonly AuditRow[] }): Promise<string[]> => {
    const imported: string[] = [];
    for (const [index, row] of input.rows.entries()) {
      const audit = input.audits[index];
      if (audit === undefined || (await tx.get(findSecret, { name: row.name })) !== undefined) continue;
      await tx.run(insertSecret, row);
      await appendAudit(tx, audit);
      imported.push(row.name);
    }
    return imported;
  },
);

export interface SecretUse {
  readonly name: string;
  readonly count: number;
  readonly atMs: number;
}

const addUse = query<SecretUse>(({ db, p }) =>
  db
    .updateTable('secret')
    .set((eb) => ({ usageCount: eb('usageCount', '+', p('count')), lastUsedAtMs: p('atMs') }))
    .where('name', '=', p('name')),
);

/** Adds to the record of the use of secrets; one that was removed meanwhile has none. */
export const recordSecretUses = operation('secrets.recordUses', async (tx, input: { readonly uses: readonly SecretUse[] }): Promise<void> => {
  for (const use of input.uses) await tx.run(addUse, use);
});

export const secretOperations = [listSecrets, setSecret, removeSecret, importSecrets, recordSecretUses];
