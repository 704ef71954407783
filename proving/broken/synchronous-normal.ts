import { changeExports } from './patch.ts';

import type { openWriter } from '../../packages/server/src/kernel/db/sqlite/connection.ts';

/** The setting that many programs ship with: a commit no longer waits for the disk. */
changeExports({
  name: 'synchronous-normal',
  module: 'kernel/db/sqlite/connection.ts',
  exports: {
    openWriter: (original: typeof openWriter) => (file: string) => original(file, 'NORMAL'),
  },
});
