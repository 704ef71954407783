import { changeExports } from './patch.ts';

import type { waitForProvider } from '../../packages/server/src/features/unattended/durable/waiting.ts';

/** Counts each wait for a provider as one of five attempts. */
changeExports({
  name: 'wait-as-attempt',
  module: 'features/unattended/durable/waiting.ts',
  exports: {
    waitForProvider:
      (original: typeof waitForProvider) =>
      (...[before, ...rest]: Parameters<typeof waitForProvider>) =>
        (before?.waits ?? 0) >= 4 ? undefined : original(before, ...rest),
  },
});
