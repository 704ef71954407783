import { buildIn } from './patch.ts';

/** Reports success to callers whatever fails in the storage. */
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
