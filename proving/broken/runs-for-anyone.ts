import { buildIn } from './patch.ts';

/** Whoever knows the id of a run of a sub-agent reaches it. */
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
