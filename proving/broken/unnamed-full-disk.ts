import { changeExports } from './patch.ts';

/** Takes a full disk for a defect of the program. */
changeExports({
  name: 'unnamed-full-disk',
  module: 'kernel/disk-full.ts',
  exports: { isDiskFull: () => () => false },
});
