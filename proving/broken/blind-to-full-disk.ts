import { buildIn } from './patch.ts';

/** Ignores that the disk refused a write. */
buildIn({
  name: 'blind-to-full-disk',
  module: 'kernel/db/sqlite/sqlite-errors.ts',
  replace: [{ from: 'return code === codes.full || code === codes.ioError || code === codes.cannotOpen;', to: 'return false;' }],
});
