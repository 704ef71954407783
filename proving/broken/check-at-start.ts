import { buildIn } from './patch.ts';

/** Checks the whole database before the daemon is ready. */
buildIn({
  name: 'check-at-start',
  module: 'kernel/db/sqlite/open-files.ts',
  replace: [{ from: 'const db = openWriter(file, sync);', to: "const db = openWriter(file, sync); db.prepare('PRAGMA integrity_check').all();" }],
});
