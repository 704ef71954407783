import { buildIn } from './patch.ts';

/** Whoever the operator let write approves what their own text led to. */
buildIn({
  name: 'channel-author-approves',
  module: 'features/channels/approvals/answers.ts',
  replace: [{ from: "trust === 'owner';", to: "trust !== 'guest';" }],
});
