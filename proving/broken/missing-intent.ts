import { buildIn } from './patch.ts';

/** No row says that a tool of class `once` is about to run. */
buildIn({
  name: 'missing-intent',
  module: 'transactions/commit-durable-turn.ts',
  replace: [{ from: 'if (intent !== undefined) await openIntent(tx, { ...intent, turnId });', to: '' }],
});
