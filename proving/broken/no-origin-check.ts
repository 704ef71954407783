import { changeExports } from './patch.ts';

import type { createOriginPolicy } from '../../packages/server/src/gateway/origin.ts';

/** Ignores the origin of requests. */
changeExports({
  name: 'no-origin-check',
  module: 'gateway/origin.ts',
  exports: {
    createOriginPolicy: (original: typeof createOriginPolicy) => (config: Parameters<typeof createOriginPolicy>[0]) => ({
      ...original(config),
      checkOrigin: () => undefined,
    }),
  },
});
