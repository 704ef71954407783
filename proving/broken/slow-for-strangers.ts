import { buildIn } from './patch.ts';

/** Answers a foreign conversation like an unknown one, but three milliseconds later. */
buildIn({
  name: 'slow-for-strangers',
  module: 'features/conversations/sessions/reading/reach.ts',
  replace: [
    {
      from: 'const meant = row !== undefined &&',
      to: 'const hidden = row === undefined && (await db.read(findConversation, { ref, principalId: null, agentIds: null })); for (const until = performance.now() + (hidden ? 3 : 0); performance.now() < until;); const meant = row !== undefined &&',
    },
  ],
});
