import type { Generated, Selectable } from 'kysely';
import { threadId } from 'node:worker_threads';
import { AppError } from '../../../app-error.ts';
import { appendAudit, auditMigrations, type AuditRow } from '../../audit.ts';
import { type Migration, operation, query, type Tx, raw } from '../../operation.ts';

interface NoteTable {
  readonly id: Generated<number>;
  readonly text: string;
  readonly flag: number | null;
}

type NoteRow = Selectable<NoteTable>;

declare module '../../tables.ts' {
  interface Tables {
    readonly note: NoteTable;
    readonly point: { readonly value: number };
  }
}

const insert = query<{ text: string; flag?: boolean | undefined }>(({ db, p }) => db.insertInto('note').values({ text: p('text'), flag: p('flag') }));
const texts = query<object, { text: string }>(({ db }) => db.selectFrom('note').select('text').orderBy('id'));
const rows = query<{ text: string }, NoteRow>(({ db, p }) =>
  db.selectFrom('note').select(['id', 'text', 'flag']).where('text', '=', p('text')).orderBy('id'),
);
const count = query<object, { count: number }>(({ db, sql }) => db.selectFrom('note').select(sql<number>`count(*)`.as('count')));
const insertPoint = query<{ value: number }>(({ db, p }) => db.insertInto('point').values({ value: p('value') }));
const points = query<object, { value: number }>(({ db }) => db.selectFrom('point').select('value').orderBy('value'));
const audits = query<object, { action: string; target: string | null; metadataJson: string | null }>(({ db }) =>
  db.selectFrom('audit').select(['action', 'target', 'metadataJson']),
);

export const addNote = operation('test.addNote', async (tx, input: { text: string; flag?: boolean }): Promise<{ added: string }> => {
  await tx.run(insert, input);
  return { added: input.text };
});

/** Fails before, between or after its two writes. */
export const addTwo = operation(
  'test.addTwo',
  async (tx, input: { text: string; failAt?: 'start' | 'middle' | 'end'; code?: 'conflict' }): Promise<void> => {
    const fail = (at: string) => {
      if (input.failAt !== at) return;
      if (input.code === undefined) throw new Error(`failed at ${at}`);
      throw new AppError(input.code, `failed at ${at}`, { param: 'text', retryAfterMs: 5, cause: new Error('inner') });
    };
    fail('start');
    await tx.run(insert, { text: `${input.text} 1` });
    fail('middle');
    await tx.run(insert, { text: `${input.text} 2` });
    fail('end');
  },
);

export const addMany = operation('test.addMany', async (tx, input: { count: number; text: string }): Promise<number> => {
  for (let index = 0; index < input.count; index++) await tx.run(insert, { text: input.text });
  return input.count;
});

export const addAudited = operation('test.addAudited', async (tx, input: { text: string; audit: AuditRow; fail?: boolean }): Promise<void> => {
  await tx.run(insert, { text: input.text });
  await appendAudit(tx, input.audit);
  if (input.fail === true) throw new AppError('conflict', 'too late');
});

export const listTexts = operation('test.listTexts', async (tx): Promise<string[]> => (await tx.all(texts, {})).map((row) => row.text));
export const findNotes = operation('test.findNotes', async (tx, input: { text: string }): Promise<NoteRow[]> => tx.all(rows, input));
export const countNotes = operation('test.countNotes', async (tx): Promise<number> => (await tx.get(count, {}))?.count ?? 0);
export const listAudits = operation('test.listAudits', async (tx) => tx.all(audits, {}));
export const addPoint = operation('test.addPoint', async (tx, input: { value: number }): Promise<void> => {
  await tx.run(insertPoint, input);
});
export const listPoints = operation('test.listPoints', async (tx): Promise<number[]> => (await tx.all(points, {})).map((row) => row.value));

export const findByPrefix = operation('test.findByPrefix', async (tx, input: { prefix?: string; limit: number }): Promise<string[]> => {
  const found = await tx.build<{ text: string }>((db) => {
    let select = db.selectFrom('note').select('text').orderBy('id').limit(input.limit);
    if (input.prefix !== undefined) select = select.where('text', 'like', `${input.prefix}%`);
    return select;
  });
  return found.map((row) => row.text);
});

/** Makes the file refuse growth as a full disk would: SQLite answers with the same code. */
export const limitPages = operation('test.limitPages', async (tx, input: { pages: number }): Promise<void> => {
  await tx.build((db, sql) => raw(db, sql`PRAGMA max_page_count = ${sql.lit(input.pages)}`));
});

export const returnFunction = operation('test.returnFunction', async (): Promise<unknown> => () => 1);

/** Terminates the thread as a crash of the engine would. */
export const crash = operation('test.crash', async (): Promise<void> => {
  process.exit(3);
});

const searchesBy = new WeakMap<Tx, string[]>();
/** Remembers its inputs between calls and returns the id of its thread. */
export const remember = operation(
  'test.remember',
  async (tx, input: { text: string }): Promise<{ asked: string[]; thread: number; notes: number }> => {
    const asked = [...(searchesBy.get(tx) ?? []), input.text];
    searchesBy.set(tx, asked);
    return { asked, thread: threadId, notes: (await tx.get(count, {}))?.count ?? 0 };
  },
);

export const unlisted = operation('test.unlisted', async (): Promise<void> => {});

/** Numbers as the engine returns them. */
export const readNumbers = operation(
  'test.readNumbers',
  (tx, { texts: given }: { readonly texts: readonly string[] }): Promise<{ number: number }[]> =>
    tx.build((db, sql) =>
      raw<{ number: number }>(
        db,
        sql`${sql.join(
          given.map((text) => sql`SELECT CAST(${text} AS BIGINT) AS number`),
          sql` UNION ALL `,
        )}`,
      ),
    ),
);

export const operations = [
  readNumbers,
  addNote,
  addTwo,
  addMany,
  addAudited,
  listTexts,
  findNotes,
  countNotes,
  listAudits,
  addPoint,
  listPoints,
  findByPrefix,
  limitPages,
  returnFunction,
  crash,
  remember,
];

export const migrations: readonly Migration[] = [
  ...auditMigrations,
  { id: '002-notes', up: ['CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL, flag INTEGER)'] },
  { id: '003-points', database: 'telemetry', up: ['CREATE TABLE point (value INTEGER NOT NULL)'] },
];
