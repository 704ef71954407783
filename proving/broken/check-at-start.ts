import { changeExports } from './patch.ts';

import type { openWriter } from '../../packages/server/src/kernel/db/sqlite/connection.ts';

/** Checks the whole database before the daemon is ready. */
changeExports({
  name: 'check-at-start',
  module: 'kernel/db/sqlite/connection.ts',
  exports: {
    openWriter: (original: typeof openWriter) => (file: string, sync: 'FULL' | 'NORMAL') => {
      const db = original(file, sync);
      db.prepare('PRAGMA integrity_check').all();
      return db;
    },
  },
});
