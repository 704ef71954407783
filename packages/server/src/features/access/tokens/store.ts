import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query } from '../../../kernel/db/operation.ts';

export interface TokenRow {
  readonly id: string;
  /** base64url of the HMAC-SHA-256 of the secret. */
  readonly digest: string;
  readonly scopesJson: string;
  readonly agentsJson: string | null;
  readonly compatJson: string | null;
  readonly person: string | null;
  /** Budgets and rate limit. */
  readonly limitsJson: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
}

export interface TokenUse {
  readonly tokenId: string;
  readonly atMs: number;
}

const tokenColumns = ['id', 'digest', 'scopesJson', 'agentsJson', 'compatJson', 'person', 'limitsJson', 'createdAtMs', 'expiresAtMs'] as const;

const allTokens = query<object, TokenRow>(({ db }) => db.selectFrom('token').select(tokenColumns).orderBy('id'));
const allUses = query<object, TokenUse>(({ db }) => db.selectFrom('tokenUse').select(['tokenId', 'lastUsedAtMs as atMs']));

const allRevoked = query<object, { readonly digest: string }>(({ db }) => db.selectFrom('revokedSecret').select('digest'));

export interface PersonRow {
  readonly name: string;
  /** `token:<id>` of its first token when that was in use before, so that what it owned is the person's. */
  readonly principalId: string;
}

const allPersons = query<object, PersonRow>(({ db }) => db.selectFrom('person').select(['name', 'principalId']));
const addPerson = query<PersonRow & { readonly atMs: number }>(({ db, each, p }) =>
  db
    .insertInto('person')
    .values({ ...each(['name', 'principalId']), createdAtMs: p('atMs') })
    .onConflict((conflict) => conflict.doNothing()),
);

/** Adds persons that do not exist, and returns all. */
export const addPersons = operation(
  'tokens.addPersons',
  async (tx, { persons, atMs }: { readonly persons: readonly PersonRow[]; readonly atMs: number }): Promise<PersonRow[]> => {
    for (const person of persons) await tx.run(addPerson, { ...person, atMs });
    return tx.all(allPersons, {});
  },
);

export const listTokens = operation(
  'tokens.list',
  async (tx): Promise<{ readonly tokens: TokenRow[]; readonly uses: TokenUse[]; readonly revoked: string[]; readonly persons: PersonRow[] }> => ({
    tokens: await tx.all(allTokens, {}),
    uses: await tx.all(allUses, {}),
    persons: await tx.all(allPersons, {}),
    revoked: (await tx.all(allRevoked, {})).map(({ digest }) => digest),
  }),
);

/** A secret of a file that grants no access any more, wherever a copy of the file has it. */
export interface RevokedSecret {
  readonly digest: string;
  readonly tokenId: string;
  readonly atMs: number;
}

const addRevoked = query<RevokedSecret>(({ db, each }) =>
  db
    .insertInto('revokedSecret')
    .values(each(['digest', 'tokenId', 'atMs']))
    .onConflict((conflict) => conflict.column('digest').doNothing()),
);

/** Records a revoked secret; with a row that takes its place, and an audit row, where there are some. */
export const revokeSecret = operation(
  'tokens.revokeSecret',
  async (
    tx,
    input: { readonly revoked: RevokedSecret; readonly row?: TokenRow | undefined; readonly audit?: AuditRow | undefined },
  ): Promise<boolean> => {
    if (input.row !== undefined && (await tx.run(insert, input.row)).changes === 0) return false;
    await tx.run(addRevoked, input.revoked);
    if (input.audit !== undefined) await appendAudit(tx, input.audit);
    return true;
  },
);

const insert = query<TokenRow>(({ db, each }) =>
  db
    .insertInto('token')
    .values(each(tokenColumns))
    .onConflict((conflict) => conflict.column('id').doNothing()),
);

/** Returns false when the id is taken; nothing is written then. */
export const insertToken = operation('tokens.insert', async (tx, input: { readonly row: TokenRow; readonly audit: AuditRow }): Promise<boolean> => {
  const { changes } = await tx.run(insert, input.row);
  if (changes === 0) return false;
  await appendAudit(tx, input.audit);
  return true;
});

interface Rotation {
  readonly id: string;
  readonly oldDigest: string;
  readonly newDigest: string;
  readonly atMs: number;
}

const replaceDigest = query<Rotation>(({ db, p }) =>
  db
    .updateTable('token')
    .set({ digest: p('newDigest'), createdAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('digest', '=', p('oldDigest')),
);

/** One conditional write: of several rotations that saw the same secret, the first wins and the others get false. */
export const rotateToken = operation('tokens.rotate', async (tx, input: Rotation & { readonly audit: AuditRow }): Promise<boolean> => {
  const { changes } = await tx.run(replaceDigest, { id: input.id, oldDigest: input.oldDigest, newDigest: input.newDigest, atMs: input.atMs });
  if (changes === 0) return false;
  await appendAudit(tx, input.audit);
  return true;
});

const replaceRow = query<TokenRow & { readonly oldDigest: string }>(({ db, p }) =>
  db
    .updateTable('token')
    .set({
      digest: p('digest'),
      scopesJson: p('scopesJson'),
      agentsJson: p('agentsJson'),
      compatJson: p('compatJson'),
      person: p('person'),
      limitsJson: p('limitsJson'),
      createdAtMs: p('createdAtMs'),
      expiresAtMs: p('expiresAtMs'),
    })
    .where('id', '=', p('id'))
    .where('digest', '=', p('oldDigest')),
);

/** Returns false when the token was rotated or revoked meanwhile; nothing is written then. */
export const replaceToken = operation(
  'tokens.replace',
  async (tx, input: { readonly row: TokenRow; readonly oldDigest: string; readonly audit: AuditRow }): Promise<boolean> => {
    const { changes } = await tx.run(replaceRow, { ...input.row, oldDigest: input.oldDigest });
    if (changes === 0) return false;
    await appendAudit(tx, input.audit);
    return true;
  },
);

const remove = query<{ readonly id: string }>(({ db, p }) => db.deleteFrom('token').where('id', '=', p('id')));
const removeUse = query<{ readonly id: string }>(({ db, p }) => db.deleteFrom('tokenUse').where('tokenId', '=', p('id')));

/** Returns false when the token no longer exists. */
export const deleteToken = operation('tokens.delete', async (tx, input: { readonly id: string; readonly audit: AuditRow }): Promise<boolean> => {
  const { changes } = await tx.run(remove, { id: input.id });
  if (changes === 0) return false;
  await tx.run(removeUse, { id: input.id });
  await appendAudit(tx, input.audit);
  return true;
});

/** Records a refused attempt, which changes nothing else. */
export const recordRefusal = operation('tokens.recordRefusal', async (tx, input: { readonly audit: AuditRow }): Promise<void> => {
  await appendAudit(tx, input.audit);
});

const upsertUse = query<TokenUse>(({ db, sql, p }) =>
  db
    .insertInto('tokenUse')
    .values({ tokenId: p('tokenId'), lastUsedAtMs: p('atMs') })
    .onConflict((conflict) => conflict.column('tokenId').doUpdateSet({ lastUsedAtMs: sql<number>`excluded.last_used_at_ms` })),
);

export const recordUses = operation('tokens.recordUses', async (tx, input: { readonly uses: readonly TokenUse[] }): Promise<void> => {
  for (const use of input.uses) await tx.run(upsertUse, use);
});

export const tokenOperations = [listTokens, addPersons, insertToken, replaceToken, rotateToken, deleteToken, revokeSecret, recordRefusal, recordUses];
