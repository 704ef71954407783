import { buildIn } from './patch.ts';

/** That the disk refused a write is not noticed. */
buildIn({
  name: 'blind-to-full-disk',
  module: 'kernel/db/sqlite/sqlite-errors.ts',
  replace: [{ from: 'return code === codes.full || code === codes.ioError || code === codes.cannotOpen;', to: 'return false;' }],
});
