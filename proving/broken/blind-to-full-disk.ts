import { changeExports } from './patch.ts';

/** Ignores that the disk refused a write. */
changeExports({
  name: 'blind-to-full-disk',
  module: 'kernel/db/sqlite/sqlite-errors.ts',
  exports: {
    isMediumFailure: () => () => false,
  },
});
