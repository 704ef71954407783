import { buildIn } from './patch.ts';

/** Makes every run of a sub-agent reachable by its id. */
buildIn({
  name: 'runs-for-anyone',
  module: 'features/delegation/subagents/status/reach.ts',
  replace: [
    {
      from: 'principalId: isAdmin(call) ? null : call.identity.principalId, requesterRef: null, agentIds',
      to: 'principalId: null, requesterRef: null, agentIds',
    },
  ],
});
