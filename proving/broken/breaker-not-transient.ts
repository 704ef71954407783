import { changeExports } from './patch.ts';

import type { circuitOpen } from '../../packages/server/src/runtime/turn-end.ts';

/** Treats a turn that met an open breaker as failed for good. */
changeExports({
  name: 'breaker-not-transient',
  module: 'runtime/turn-end.ts',
  exports: {
    circuitOpen: (original: typeof circuitOpen) => (retryAfterMs: number, cause?: string) => {
      const end = original(retryAfterMs, cause);
      return { ...end, failure: { ...end.failure, transient: false } };
    },
  },
});
