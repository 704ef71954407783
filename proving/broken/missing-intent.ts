import { buildIn } from './patch.ts';

/** Writes no row before a tool of class `once` runs. */
buildIn({
  name: 'missing-intent',
  module: 'transactions/commit-durable-turn.ts',
  replace: [{ from: 'if (intent !== undefined) await openIntent(tx, { ...intent, turnId });', to: '' }],
});
