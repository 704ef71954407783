import { changeExports } from './patch.ts';

/** Accepts connections regardless of the limit of open files. */
changeExports({
  name: 'no-descriptor-cap',
  module: 'kernel/descriptors.ts',
  exports: {
    connectionsWithin: () => (wanted: number) => wanted,
  },
});
