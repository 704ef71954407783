import { buildIn } from './patch.ts';

/** Runs each statement of a migration outside a transaction. */
buildIn({
  name: 'non-transactional-step',
  module: 'kernel/db/sqlite/migrate.ts',
  replace: [
    { from: "db.exec('BEGIN IMMEDIATE');", to: '' },
    { from: "db.exec('COMMIT');", to: '' },
  ],
});
