import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { ConfigVersion } from './api.ts';

/** A version with its text. */
export interface SealedVersion extends ConfigVersion {
  readonly sealedText: string;
}

/** The version that the file of a home was written from, and the digest of that file. */
export interface FileMark {
  readonly homeId: string;
  readonly version: number;
  readonly digest: string;
}

const listed = ['number', 'digest', 'atMs', 'principalId', 'origin', 'summary', 'section', 'key', 'traceId'] as const;
const columns = [...listed, 'sealedText'] as const;

const newest = query<object, SealedVersion>(({ db }) => db.selectFrom('configVersion').select(columns).orderBy('number', 'desc').limit(1));

const markOf = query<{ homeId: string }, FileMark>(({ db, p }) =>
  db.selectFrom('configFile').select(['homeId', 'version', 'digest']).where('homeId', '=', p('homeId')),
);

/** Returns the newest version, and what is known of the file of a home. */
export const readConfigState = operation(
  'config.state',
  async (
    tx,
    { homeId }: { readonly homeId: string },
  ): Promise<{ readonly newest: SealedVersion | undefined; readonly mark: FileMark | undefined }> => ({
    newest: await tx.get(newest, {}),
    mark: await tx.get(markOf, { homeId }),
  }),
);

const insert = query<SealedVersion>(({ db, each }) => db.insertInto('configVersion').values(each(columns)));

const saveMark = query<FileMark>(({ db, each, sql }) =>
  db
    .insertInto('configFile')
    .values(each(['homeId', 'version', 'digest']))
    .onConflict((conflict) =>
      conflict.column('homeId').doUpdateSet({ version: sql<number>`excluded.version`, digest: sql<string>`excluded.digest` }),
    ),
);

/** Adds a version behind the newest one, which must be the one before it; `mark` when a file has its text already. */
export const addConfigVersion = operation(
  'config.add',
  async (
    tx,
    { version, mark, audit }: { readonly version: SealedVersion; readonly mark?: FileMark | undefined; readonly audit?: AuditRow | undefined },
  ): Promise<void> => {
    if (((await tx.get(newest, {}))?.number ?? 0) !== version.number - 1)
      throw new AppError('conflict', 'The configuration was changed by another call meanwhile; read it again');
    await tx.run(insert, version);
    if (mark !== undefined) await tx.run(saveMark, mark);
    if (audit !== undefined) await appendAudit(tx, audit);
  },
);

/** Records that the file of a home was written. */
export const markConfigFile = operation('config.mark', async (tx, mark: FileMark): Promise<void> => {
  await tx.run(saveMark, mark);
});

const remove = query<{ number: number }>(({ db, p }) => db.deleteFrom('configVersion').where('number', '=', p('number')));
const anyMark = query<{ number: number }, { version: number }>(({ db, p }) =>
  db.selectFrom('configFile').select('version').where('version', '=', p('number')).limit(1),
);

/** Removes the newest version, which was not written to any file: its writing failed. */
export const dropConfigVersion = operation(
  'config.drop',
  async (tx, { number, audit }: { readonly number: number; readonly audit?: AuditRow | undefined }): Promise<void> => {
    if (audit !== undefined) await appendAudit(tx, audit);
    if ((await tx.get(newest, {}))?.number !== number || (await tx.get(anyMark, { number })) !== undefined) return;
    await tx.run(remove, { number });
  },
);

/** Lists versions, newest first, without their texts. */
export const listConfigVersions = operation(
  'config.list',
  async (tx, { section, limit }: { readonly section?: string | undefined; readonly limit: number }): Promise<ConfigVersion[]> =>
    tx.build<ConfigVersion>((db) => {
      const all = db.selectFrom('configVersion').select(listed).orderBy('number', 'desc').limit(limit);
      return section === undefined ? all : all.where('section', '=', section);
    }),
);

const byDigest = query<{ from: string; to: string }, SealedVersion>(({ db, p }) =>
  db.selectFrom('configVersion').select(columns).where('digest', '>=', p('from')).where('digest', '<', p('to')).orderBy('number', 'desc'),
);
const before = query<{ number: number }, SealedVersion>(({ db, p }) =>
  db.selectFrom('configVersion').select(columns).where('number', '<', p('number')).orderBy('number', 'desc').limit(1),
);

/** Returns the newest version whose digest begins with some hexadecimal digits; `ambiguous` when different texts do. */
export const findConfigVersion = operation(
  'config.find',
  async (tx, { prefix }: { readonly prefix: string }): Promise<SealedVersion | 'ambiguous' | undefined> => {
    const found = await tx.all(byDigest, { from: prefix, to: `${prefix}g` });
    return new Set(found.map(({ digest }) => digest)).size > 1 ? 'ambiguous' : found[0];
  },
);

/** Returns the version before another one. */
export const versionBefore = operation('config.before', async (tx, { number }: { readonly number: number }): Promise<SealedVersion | undefined> =>
  tx.get(before, { number }),
);

const removeOlder = query<{ beforeMs: number; newest: number }>(({ db, p }) =>
  db.deleteFrom('configVersion').where('atMs', '<', p('beforeMs')).where('number', '<', p('newest')),
);
const oldest = query<object, { digest: string }>(({ db }) => db.selectFrom('configVersion').select('digest').orderBy('number').limit(1));

/** Deletes versions from before a time, but never the newest one. */
export const squashConfigVersions = operation(
  'config.squash',
  async (
    tx,
    { beforeMs, audit }: { readonly beforeMs: number; readonly audit: AuditRow },
  ): Promise<{ readonly squashed: number; readonly rootDigest: string | undefined }> => {
    const squashed = await squash(tx, beforeMs);
    await appendAudit(tx, audit);
    return { squashed, rootDigest: (await tx.get(oldest, {}))?.digest };
  },
);

async function squash(tx: Tx, beforeMs: number): Promise<number> {
  const last = await tx.get(newest, {});
  return last === undefined ? 0 : (await tx.run(removeOlder, { beforeMs, newest: last.number })).changes;
}

export const configVersionOperations = [
  readConfigState,
  addConfigVersion,
  markConfigFile,
  dropConfigVersion,
  listConfigVersions,
  findConfigVersion,
  versionBefore,
  squashConfigVersions,
];
