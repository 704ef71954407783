import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../../kernel/owners.ts';

/** Taint of a file, or of everything in a folder that has no separate row. */
export interface TaintRow {
  readonly agentId: string;
  /** Folded like in a case-insensitive file system. */
  readonly path: string;
  /** The name on disk. */
  readonly name: string;
  readonly tree: 0 | 1;
  readonly tainted: 0 | 1;
  /** SHA-256 of the content; null where it does not matter. */
  readonly digest: string | null;
}

const rowColumns = ['agentId', 'path', 'name', 'tree', 'tainted', 'digest'] as const;

const anyOf = query<{ agentId: string }, { path: string }>(({ db, p }) =>
  db.selectFrom('fileTaint').select('path').where('agentId', '=', p('agentId')).limit(1),
);
const anyContentOf = query<{ agentId: string }, { digest: string }>(({ db, p }) =>
  db.selectFrom('fileTaintContent').select('digest').where('agentId', '=', p('agentId')).limit(1),
);
/** Whether any row exists for a present or former file of the agent. */
const isAnyKnown = async (tx: Tx, agentId: string): Promise<boolean> =>
  (await tx.get(anyOf, { agentId })) !== undefined || (await tx.get(anyContentOf, { agentId })) !== undefined;
const windowsOf = query<{ agentId: string }, StoredWindow>(({ db, sql, p }) =>
  db
    .selectFrom('fileTaintWindow')
    .select(['id', 'agentId', 'sinceMs', 'bootId', sql<0 | 1>`case when ${ofDeadBoot(sql, 'fileTaintWindow.bootId')} then 1 else 0 end`.as('isDead')])
    .where('agentId', '=', p('agentId')),
);

/** Start, in file system time, of a command that may write text from outside. */
export interface Window {
  readonly id: string;
  readonly agentId: string;
  readonly sinceMs: number;
  /** The boot that runs the command. */
  readonly bootId: string;
}

/** `isDead`: so is the command. */
export interface StoredWindow extends Window {
  readonly isDead: 0 | 1;
}

export interface KnownFile {
  /** Whether any row exists for a file of the agent. */
  readonly any: boolean;
  readonly windows: readonly StoredWindow[];
  readonly exact?: TaintRow | undefined;
  /** Enclosing folders, all of which count. */
  readonly inTree: boolean;
}

export const knownFile = operation(
  'workspace.knownFile',
  async (
    tx,
    { agentId, path, around }: { readonly agentId: string; readonly path: string; readonly around: readonly string[] },
  ): Promise<KnownFile> => {
    const windows = await tx.all(windowsOf, { agentId });
    if (!(await isAnyKnown(tx, agentId))) return { any: false, windows, inTree: false };
    const rows = await tx.build<TaintRow>((db) =>
      db
        .selectFrom('fileTaint')
        .select(rowColumns)
        .where('agentId', '=', agentId)
        .where('path', 'in', [path, ...around]),
    );
    return { any: true, windows, exact: rows.find((row) => row.path === path && row.tree === 0), inTree: rows.some((row) => row.tree === 1) };
  },
);

const byDigest = query<{ agentId: string; digest: string }, { digest: string }>(({ db, p }) =>
  db.selectFrom('fileTaintContent').select('digest').where('agentId', '=', p('agentId')).where('digest', '=', p('digest')),
);

/** Whether a file of the agent with this exact content held text from outside, under any name. */
export const isTaintedContent = operation(
  'workspace.taintedContent',
  async (tx, input: { readonly agentId: string; readonly digest: string }): Promise<boolean> => (await tx.get(byDigest, input)) !== undefined,
);

const ofAgent = query<{ agentId: string }, TaintRow>(({ db, p }) =>
  db.selectFrom('fileTaint').select(rowColumns).where('agentId', '=', p('agentId')).where('tainted', '=', 1).limit(5000),
);

export const taintedFiles = operation(
  'workspace.taintedFiles',
  async (tx, { agentId }: { readonly agentId: string }): Promise<{ readonly rows: TaintRow[]; readonly windows: StoredWindow[] }> => ({
    rows: await tx.all(ofAgent, { agentId }),
    windows: await tx.all(windowsOf, { agentId }),
  }),
);

const put = query<TaintRow>(({ db, sql, each }) =>
  db
    .insertInto('fileTaint')
    .values(each(rowColumns))
    .onConflict((conflict) =>
      conflict.columns(['agentId', 'path']).doUpdateSet({
        name: sql<string>`excluded.name`,
        tree: sql<0 | 1>`excluded.tree`,
        tainted: sql<0 | 1>`excluded.tainted`,
        digest: sql<string>`excluded.digest`,
      }),
    ),
);
const putContent = query<{ agentId: string; digest: string; atMs: number }>(({ db, sql, p }) =>
  db
    .insertInto('fileTaintContent')
    .values({ agentId: p('agentId'), digest: p('digest'), seenMs: p('atMs') })
    .onConflict((conflict) => conflict.columns(['agentId', 'digest']).doUpdateSet({ seenMs: sql<number>`excluded.seen_ms` })),
);
/** How many contents of an agent are remembered, newest first. */
const maxContents = 10_000;
const pruneContents = query<{ agentId: string; most: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('fileTaintContent')
    .where('agentId', '=', p('agentId'))
    .where(
      sql<boolean>`seen_ms < (SELECT kept.seen_ms FROM file_taint_content AS kept WHERE kept.agent_id = ${p('agentId')} ORDER BY kept.seen_ms DESC LIMIT 1 OFFSET ${p('most')})`,
    ),
);
const remove = query<{ agentId: string; path: string }>(({ db, p }) =>
  db.deleteFrom('fileTaint').where('agentId', '=', p('agentId')).where('path', '=', p('path')),
);
const close = query<{ id: string }>(({ db, p }) => db.deleteFrom('fileTaintWindow').where('id', '=', p('id')));

export interface Marking {
  readonly agentId: string;
  readonly atMs: number;
  readonly rows: readonly Omit<TaintRow, 'agentId'>[];
}

async function remember(tx: Tx, agentId: string, atMs: number, rows: Marking['rows']): Promise<void> {
  const digests = rows.flatMap(({ tainted, digest }) => (tainted === 1 && digest !== null ? [digest] : []));
  for (const digest of digests) await tx.run(putContent, { agentId, digest, atMs });
  if (digests.length > 0) await tx.run(pruneContents, { agentId, most: maxContents });
}

/** Records the taint of files. A clean file needs a row only when others have rows. */
export const markFiles = operation('workspace.markFiles', async (tx, { agentId, atMs, rows }: Marking): Promise<void> => {
  const isKnown = (await isAnyKnown(tx, agentId)) || (await tx.all(windowsOf, { agentId })).length > 0;
  for (const row of rows) if (isKnown || row.tainted === 1 || row.path.startsWith('.')) await tx.run(put, { agentId, ...row });
  await remember(tx, agentId, atMs, rows);
});

const exactly = query<{ agentId: string; path: string; digest: string }, { path: string }>(({ db, p }) =>
  db
    .selectFrom('fileTaint')
    .select('path')
    .where('agentId', '=', p('agentId'))
    .where('path', '=', p('path'))
    .where('digest', '=', p('digest'))
    .where('tainted', '=', 0),
);

/** Records the files of a command that has ended, except those that a clean turn wrote meanwhile. */
export const closeWindow = operation(
  'workspace.closeTaintWindow',
  async (tx, { id, agentId, atMs, rows }: Marking & Pick<Window, 'id'>): Promise<void> => {
    const written: Omit<TaintRow, 'agentId'>[] = [];
    for (const row of rows) {
      const { path, digest } = row;
      if (digest !== null && (await tx.get(exactly, { agentId, path, digest })) !== undefined) continue;
      await tx.run(put, { agentId, ...row });
      written.push(row);
    }
    await remember(tx, agentId, atMs, written);
    await tx.run(close, { id });
  },
);

/** Records deleted files. */
export const forgetFiles = operation(
  'workspace.forgetFiles',
  async (tx, { agentId, paths }: { readonly agentId: string; readonly paths: readonly string[] }): Promise<void> => {
    for (const path of paths) await tx.run(remove, { agentId, path });
  },
);

const open = query<Window>(({ db, each }) => db.insertInto('fileTaintWindow').values(each(['id', 'agentId', 'sinceMs', 'bootId'])));

export const openWindow = operation('workspace.openTaintWindow', async (tx, window: Window): Promise<void> => {
  await tx.run(open, window);
});

export const fileTaintOperations = [knownFile, isTaintedContent, taintedFiles, markFiles, forgetFiles, openWindow, closeWindow];
