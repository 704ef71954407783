import { changeExports } from './patch.ts';

import type { reachOf } from '../../packages/server/src/features/delegation/subagents/status/reach.ts';

/** Makes every run of a sub-agent reachable by its id. */
changeExports({
  name: 'runs-for-anyone',
  module: 'features/delegation/subagents/status/reach.ts',
  exports: {
    reachOf: (original: typeof reachOf) => (call: Parameters<typeof reachOf>[0]) =>
      call.agentCaller === undefined ? { ...original(call), principalId: null } : original(call),
  },
});
