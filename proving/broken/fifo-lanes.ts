import { buildIn } from './patch.ts';

/** Turns of an agent start in the order in which they came, whoever asked. */
buildIn({
  name: 'fifo-lanes',
  module: 'kernel/lane.ts',
  replace: [{ from: 'const id = waiter.entry.principalId;', to: "const id = 'all';" }],
});
