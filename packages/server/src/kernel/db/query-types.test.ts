import { expect, test } from 'vitest';
import { operation, query } from './operation.ts';
import { openInlineDb } from './sqlite/inline.ts';

interface PlantTable {
  readonly id: string;
  readonly wateredAtMs: number | null;
}

declare module './tables.ts' {
  interface Tables {
    readonly testPlant: PlantTable;
  }
}

const migrations = [{ id: '001-plants', up: ['CREATE TABLE test_plant (id TEXT PRIMARY KEY, watered_at_ms INTEGER)'] }];
const insert = query<PlantTable>(({ db, p }) => db.insertInto('testPlant').values({ id: p('id'), wateredAtMs: p('wateredAtMs') }));
const all = query<object, PlantTable>(({ db }) => db.selectFrom('testPlant').select(['id', 'wateredAtMs']).orderBy('id'));
const add = operation('test.add', async (tx, plant: PlantTable): Promise<PlantTable[]> => {
  await tx.run(insert, plant);
  return tx.all(all, {});
});

// Each of these compiles only while the checker refuses the line after `@ts-expect-error`.
export const planted = [
  // @ts-expect-error -- a wrong table
  query<object>(({ db }) => db.selectFrom('testPlants').select('id')),
  // @ts-expect-error -- a wrong column
  query<object>(({ db }) => db.selectFrom('testPlant').select('wateredAt')),
  // @ts-expect-error -- a parameter that the query does not have
  query<{ id: string }>(({ db, p }) => db.deleteFrom('testPlant').where('id', '=', p('name'))),
  // @ts-expect-error -- a parameter of another type than its column
  query<{ id: number }>(({ db, p }) => db.deleteFrom('testPlant').where('id', '=', p('id'))),
  // @ts-expect-error -- a row of another type than the result
  query<object, { wateredAtMs: number }>(({ db }) => db.selectFrom('testPlant').select('wateredAtMs')),
];

test('columns are snake_case in the database and camelCase in rows', async () => {
  await using db = await openInlineDb({ migrations, operations: [add] });
  expect(await db.write(add, { id: 'fern', wateredAtMs: null })).toEqual([{ id: 'fern', wateredAtMs: null }]);
});

test('U+0000 in a text is stored as U+FFFD, and found by either', async () => {
  const byId = query<{ id: string }, { id: string }>(({ db, p }) => db.selectFrom('testPlant').select('id').where('id', '=', p('id')));
  const find = operation('test.find', async (tx, id: string) => (await tx.get(byId, { id }))?.id);
  await using db = await openInlineDb({ migrations, operations: [add, find] });
  await db.write(add, { id: 'fe\0rn', wateredAtMs: null });
  expect([await db.read(find, 'fe\0rn'), await db.read(find, 'fe\ufffdrn')]).toEqual(['fe\ufffdrn', 'fe\ufffdrn']);
});

test('a query that names no columns is refused, and the next one is not affected', async () => {
  const everything = operation('test.everything', (tx) => tx.build((db) => db.selectFrom('testPlant').selectAll()));
  await using db = await openInlineDb({ migrations, operations: [add, everything] });
  await expect(db.read(everything, undefined)).rejects.toThrow('name the columns');
  expect(await db.write(add, { id: 'moss', wateredAtMs: 5 })).toEqual([{ id: 'moss', wateredAtMs: 5 }]);
});

test('an order by the name of a result sorts by it, and by a column otherwise', async () => {
  const ordered = operation('test.ordered', (tx) =>
    tx.build<{ id: string; lateMs: number }>((db, sql) =>
      db
        .selectFrom('testPlant')
        .select(['id', sql<number>`-watered_at_ms`.as('lateMs')])
        .orderBy('lateMs')
        .orderBy('wateredAtMs'),
    ),
  );
  await using db = await openInlineDb({ migrations, operations: [add, ordered] });
  await db.write(add, { id: 'a', wateredAtMs: 1 });
  await db.write(add, { id: 'b', wateredAtMs: 2 });
  expect((await db.read(ordered, undefined)).map(({ id }) => id)).toEqual(['b', 'a']);
});
