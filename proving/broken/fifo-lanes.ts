import { buildIn } from './patch.ts';

/** Starts an agent's turns in order of arrival, regardless of the principal. */
buildIn({
  name: 'fifo-lanes',
  module: 'kernel/lane-group.ts',
  replace: [{ from: 'const id = waiter.principalId;', to: "const id = 'all';" }],
});
