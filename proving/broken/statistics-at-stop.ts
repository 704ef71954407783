import { buildIn } from './patch.ts';

/** Collects table statistics when the daemon stops; they decide how tables are read from then on. */
buildIn({
  name: 'statistics-at-stop',
  module: 'kernel/db/sqlite/worker.ts',
  replace: [{ from: "db?.exec('PRAGMA wal_checkpoint(TRUNCATE)');", to: "db?.exec('PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)');" }],
});
buildIn({
  name: 'statistics-at-stop',
  module: 'kernel/db/sqlite/open-files.ts',
  replace: [{ from: '      dropStatistics(db);\n', to: '' }],
});
