import { changeExports } from './patch.ts';

import type { createAlone } from '../../packages/server/src/features/conversations/sessions/changes/alone.ts';

/** A conversation is erased while a turn runs in it. */
changeExports({
  name: 'reset-outside-the-lane',
  module: 'features/conversations/sessions/changes/alone.ts',
  exports: {
    createAlone: (original: typeof createAlone) => () => original({ acquire: async () => ({ release: () => {}, [Symbol.dispose]: () => {} }) }),
  },
});
