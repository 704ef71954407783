import { changeExports } from './patch.ts';

/** Ignores that the disk refused a write, here or at the database server. */
changeExports({
  name: 'blind-to-full-disk',
  module: 'kernel/db/sqlite/sqlite-errors.ts',
  exports: {
    isMediumFailure: () => () => false,
  },
});
changeExports({
  name: 'blind-to-full-disk',
  module: 'kernel/db/postgres/postgres-errors.ts',
  exports: {
    isDiskFailure: () => () => false,
  },
});
