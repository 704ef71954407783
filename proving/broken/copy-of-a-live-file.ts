import { buildIn } from './patch.ts';

/** Backs up by copying the database file, whatever is still in its log. */
buildIn({
  name: 'copy-of-a-live-file',
  module: 'kernel/db/sqlite/backup.ts',
  replace: [
    { from: 'import { closeSync, mkdirSync,', to: 'import { copyFileSync, closeSync, mkdirSync,' },
    {
      from: 'return await copyDatabase(source, targetFile, onProgress);',
      to: 'mkdirSync(dirname(targetFile), { recursive: true }); copyFileSync(sourceFile, targetFile); return { bytes: statSync(targetFile).size };',
    },
  ],
});

/** Prevents SQLite from folding the log into the file by chance. */
buildIn({
  name: 'copy-of-a-live-file',
  module: 'kernel/db/sqlite/connection.ts',
  replace: [{ from: 'PRAGMA wal_autocheckpoint = 1000;', to: 'PRAGMA wal_autocheckpoint = 0;' }],
});
