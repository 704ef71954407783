import { buildIn } from './patch.ts';

/** Whoever knows the reference of a conversation reaches it. */
buildIn({
  name: 'missing-owner-check',
  module: 'features/conversations/sessions/reading/reach.ts',
  replace: [{ from: 'principalId: isAdmin(call) ? null : call.identity.principalId, agentIds', to: 'principalId: null, agentIds' }],
});
