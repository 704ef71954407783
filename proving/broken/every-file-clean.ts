import { changeExports } from './patch.ts';

import type { createFileTaints } from '../../packages/server/src/features/environment/workspace/taint/file-taint.ts';

/** Counts files written by turns that have read untrusted text as the owner's own. */
changeExports({
  name: 'every-file-clean',
  module: 'features/environment/workspace/taint/file-taint.ts',
  exports: {
    createFileTaints: (original: typeof createFileTaints) => (deps: Parameters<typeof createFileTaints>[0]) => ({
      ...original(deps),
      isTainted: async () => false,
      isTaintedBelow: async () => false,
    }),
  },
});
