import { expect, test } from 'vitest';
import { createQueryTools } from './query-tools.ts';

const textOf = (dialect: 'sqlite' | 'postgres') => {
  const { db } = createQueryTools(dialect);
  const items = db.selectFrom('workItem').select('id').where('kind', '=', 'cron');
  return {
    distinct: items.distinct().compile().sql,
    claimed: items.limit(5).forUpdate().skipLocked().compile().sql.trim(),
    guarded: db.selectFrom('workItem as w').select('w.id').where('w.kind', '=', 'cron').forShare('w').compile().sql.trim(),
    pruned: db
      .deleteFrom('workItem')
      .where('id', 'in', db.selectFrom('workItem').select('id').limit(5).forUpdate().skipLocked())
      .compile()
      .sql.replaceAll(/ +\)/g, ')'),
  };
};

test('a row lock is written once, and SQLite, whose one writer needs none, leaves it out', () => {
  expect(textOf('sqlite')).toEqual({
    distinct: 'select distinct "id" from "work_item" where "kind" = ?',
    claimed: 'select "id" from "work_item" where "kind" = ? limit 5',
    guarded: 'select "w"."id" from "work_item" as "w" where "w"."kind" = ?',
    pruned: 'delete from "work_item" where "id" in (select "id" from "work_item" limit 5)',
  });
  expect(textOf('postgres')).toEqual({
    distinct: 'select distinct "id" from "work_item" where "kind" = $1',
    claimed: 'select "id" from "work_item" where "kind" = $1 limit $2 for update skip locked',
    guarded: 'select "w"."id" from "work_item" as "w" where "w"."kind" = $1 for share of "w"',
    pruned: 'delete from "work_item" where "id" in (select "id" from "work_item" limit $1 for update skip locked)',
  });
});
