import { buildIn } from './patch.ts';

/** People whom the operator approved approve what their own text led to. */
buildIn({
  name: 'channel-author-approves',
  module: 'features/channels/approvals/answers.ts',
  replace: [{ from: "trust === 'owner';", to: "trust !== 'guest';" }],
});
