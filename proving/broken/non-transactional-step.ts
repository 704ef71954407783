import { buildIn } from './patch.ts';

/** The statements of a migration are run one by one, each for itself. */
buildIn({
  name: 'non-transactional-step',
  module: 'kernel/db/sqlite/migrate.ts',
  replace: [
    { from: "db.exec('BEGIN IMMEDIATE');", to: '' },
    { from: "db.exec('COMMIT');", to: '' },
  ],
});
