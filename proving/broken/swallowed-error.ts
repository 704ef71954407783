import { buildIn } from './patch.ts';

/** Whatever fails in the storage, callers are told that it is done. */
buildIn({
  name: 'swallowed-error',
  module: 'kernel/db/sqlite/group-commit.ts',
  replace: [
    { from: 'results.push(new Failure(error));', to: 'results.push(undefined);' },
    {
      from: 'statement.commit.run();\n    return { results, stored };',
      to: 'try { statement.commit.run(); } catch { if (db.isTransaction) statement.rollback.run(); }\n    return { results, stored };',
    },
  ],
});
