import { buildIn } from './patch.ts';

/** Waits without end for the answers of a database server. */
buildIn({
  name: 'no-deadline',
  module: 'kernel/db/postgres/connection.ts',
  replace: [{ from: 'const graceMs = 1_000;', to: 'const graceMs = 2_000_000_000;' }],
});
