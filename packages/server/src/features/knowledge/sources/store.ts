import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { KnowledgeFileRow } from './tables.ts';

/** What a scan compares with the folder. */
export interface KnownFile {
  readonly id: string;
  readonly path: string;
  readonly place: string;
  readonly stamp: string;
  readonly digest: string;
  readonly indexedAtMs: number;
}

const filesOfSource = query<{ agentId: string; source: string }, KnownFile>(({ db, p }) =>
  db
    .selectFrom('knowledgeFile')
    .select(['id', 'path', 'place', 'stamp', 'digest', 'indexedAtMs'])
    .where('agentId', '=', p('agentId'))
    .where('source', '=', p('source')),
);

export const listKnownFiles = operation('knowledge.files', (tx, input: { readonly agentId: string; readonly source: string }): Promise<KnownFile[]> =>
  tx.all(filesOfSource, input),
);

/** Sums of a source, as it was indexed. */
export interface SourceSums {
  readonly agentId: string;
  readonly source: string;
  readonly place: string;
  readonly files: number;
  readonly failed: number;
  readonly passages: number;
  readonly bytes: number;
}

const sums = query<object, SourceSums>(({ db, sql }) =>
  db
    .selectFrom('knowledgeFile')
    .select([
      'agentId',
      'source',
      'place',
      sql<number>`count(*)`.as('files'),
      sql<number>`count(problem)`.as('failed'),
      sql<number>`coalesce(sum(passages), 0)`.as('passages'),
      sql<number>`coalesce(sum(size_bytes), 0)`.as('bytes'),
    ])
    .groupBy(['agentId', 'source', 'place'])
    .orderBy('agentId')
    .orderBy('source'),
);

export const listSourceSums = operation('knowledge.sources', (tx): Promise<SourceSums[]> => tx.all(sums, {}));

const failures = query<{ agentId: string; source: string; limit: number }, { path: string; problem: string | null }>(({ db, p }) =>
  db
    .selectFrom('knowledgeFile')
    .select(['path', 'problem'])
    .where('agentId', '=', p('agentId'))
    .where('source', '=', p('source'))
    .where('problem', 'is not', null)
    .orderBy('path')
    .limit(p('limit')),
);

export const listFailures = operation(
  'knowledge.failures',
  (tx, input: { readonly agentId: string; readonly source: string; readonly limit: number }) => tx.all(failures, input),
);

const dropMemories = query<{ fileId: string }>(({ db, p }) =>
  db.deleteFrom('memory').where('id', 'in', db.selectFrom('knowledgePassage').select('memoryId').where('fileId', '=', p('fileId'))),
);
const dropPassages = query<{ fileId: string }>(({ db, p }) => db.deleteFrom('knowledgePassage').where('fileId', '=', p('fileId')));
const dropFile = query<{ fileId: string }>(({ db, p }) => db.deleteFrom('knowledgeFile').where('id', '=', p('fileId')));
const fileColumns = ['id', 'agentId', 'source', 'place', 'path', 'stamp', 'digest', 'sizeBytes', 'passages', 'problem', 'indexedAtMs'] as const;
const upsertFile = query<KnowledgeFileRow>(({ db, each }) =>
  db
    .insertInto('knowledgeFile')
    .values(each(fileColumns))
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((eb) => ({
        place: eb.ref('excluded.place'),
        stamp: eb.ref('excluded.stamp'),
        digest: eb.ref('excluded.digest'),
        sizeBytes: eb.ref('excluded.sizeBytes'),
        passages: eb.ref('excluded.passages'),
        problem: eb.ref('excluded.problem'),
        indexedAtMs: eb.ref('excluded.indexedAtMs'),
      })),
    ),
);
const addPassage = query<PassageRow>(({ db, each }) =>
  db.insertInto('knowledgePassage').values(each(['memoryId', 'fileId', 'position', 'part', 'label'])),
);

async function removeText(tx: Tx, fileId: string): Promise<void> {
  await tx.run(dropMemories, { fileId });
  await tx.run(dropPassages, { fileId });
}

export interface PutKnowledgeFile {
  readonly file: KnowledgeFileRow;
  /** Owner of the passages in the search index. */
  readonly owner: string;
  readonly trusted: boolean;
  readonly passages: readonly { readonly id: string; readonly content: string; readonly part: number; readonly label: string }[];
}

/** Writes the row of a file and removes its earlier text. */
export async function replaceKnowledgeFile(tx: Tx, file: KnowledgeFileRow): Promise<void> {
  // Written first: of two that replace the same file, the later one waits here and sees what the earlier one added.
  await tx.run(upsertFile, file);
  await removeText(tx, file.id);
}

export interface PassageRow {
  readonly memoryId: string;
  readonly fileId: string;
  readonly position: number;
  readonly part: number;
  readonly label: string;
}

export async function addKnowledgePassage(tx: Tx, passage: PassageRow): Promise<void> {
  await tx.run(addPassage, passage);
}

const setStamp = query<{ fileId: string; stamp: string }>(({ db, p }) =>
  db
    .updateTable('knowledgeFile')
    .set({ stamp: p('stamp') })
    .where('id', '=', p('fileId')),
);

/** Notes that a file was touched and has the same content. */
export const touchKnowledgeFile = operation(
  'knowledge.touch',
  async (tx, input: { readonly fileId: string; readonly stamp: string }): Promise<void> => {
    await tx.run(setStamp, input);
  },
);

/** Removes files with everything that was derived from them. */
export const removeKnowledgeFiles = operation('knowledge.remove', async (tx, { fileIds }: { readonly fileIds: readonly string[] }): Promise<void> => {
  for (const fileId of fileIds) {
    await removeText(tx, fileId);
    await tx.run(dropFile, { fileId });
  }
});

export interface Hit {
  readonly memoryId: string;
  readonly fileId: string;
  readonly source: string;
  readonly place: string;
  readonly path: string;
  readonly part: number;
  readonly label: string;
}

const hits = query<{ ids: string }, Hit>(({ db, p, json }) =>
  db
    .selectFrom('knowledgePassage')
    .innerJoin('knowledgeFile', 'knowledgeFile.id', 'knowledgePassage.fileId')
    .select([
      'knowledgePassage.memoryId',
      'knowledgePassage.fileId',
      'knowledgeFile.source',
      'knowledgeFile.place',
      'knowledgeFile.path',
      'knowledgePassage.part',
      'knowledgePassage.label',
    ])
    .where('knowledgePassage.memoryId', 'in', json.texts(p('ids'))),
);

/** Returns where entries of the search index are from. */
export const locatePassages = operation('knowledge.locate', (tx, { ids }: { readonly ids: readonly string[] }) =>
  tx.all(hits, { ids: JSON.stringify(ids) }),
);

const fileById = query<{ fileId: string }, KnowledgeFileRow>(({ db, p }) =>
  db.selectFrom('knowledgeFile').select(fileColumns).where('id', '=', p('fileId')),
);
const lastPart = query<{ fileId: string }, { parts: number }>(({ db, sql, p }) =>
  db
    .selectFrom('knowledgePassage')
    .select(sql<number>`coalesce(max(part), 0)`.as('parts'))
    .where('fileId', '=', p('fileId')),
);
const passagesOf = query<{ fileId: string; first: number; last: number }, { part: number; label: string; content: string }>(({ db, p }) =>
  db
    .selectFrom('knowledgePassage')
    .innerJoin('memory', 'memory.id', 'knowledgePassage.memoryId')
    .select(['knowledgePassage.part', 'knowledgePassage.label', 'memory.content'])
    .where('knowledgePassage.fileId', '=', p('fileId'))
    .where('knowledgePassage.part', '>=', p('first'))
    .where('knowledgePassage.part', '<=', p('last'))
    .orderBy('knowledgePassage.position'),
);

export interface ReadFile {
  readonly file: KnowledgeFileRow;
  readonly parts: number;
  readonly passages: readonly { readonly part: number; readonly label: string; readonly content: string }[];
}

/** Reads parts of an indexed file. */
export const readKnowledgeFile = operation(
  'knowledge.read',
  async (tx, input: { readonly fileId: string; readonly first: number; readonly last: number }): Promise<ReadFile | undefined> => {
    const file = await tx.get(fileById, { fileId: input.fileId });
    if (file === undefined) return undefined;
    return { file, parts: (await tx.get(lastPart, { fileId: input.fileId }))?.parts ?? 0, passages: await tx.all(passagesOf, input) };
  },
);

export const knowledgeOperations = [
  listKnownFiles,
  listSourceSums,
  listFailures,
  touchKnowledgeFile,
  removeKnowledgeFiles,
  locatePassages,
  readKnowledgeFile,
];
