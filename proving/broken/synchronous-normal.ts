import { buildIn } from './patch.ts';

/** The setting that many programs ship with: a commit no longer waits for the disk. */
buildIn({
  name: 'synchronous-normal',
  module: 'kernel/db/sqlite/connection.ts',
  replace: [{ from: 'db.exec(`PRAGMA synchronous = ${sync}`);', to: "db.exec('PRAGMA synchronous = NORMAL');" }],
});
