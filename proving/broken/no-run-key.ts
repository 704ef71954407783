import { buildIn } from './patch.ts';

/** Ignores run keys, so that a graph resumed after a crash starts its runs a second time. */
buildIn({
  name: 'no-run-key',
  module: 'features/delegation/subagents/store.ts',
  replace: [{ from: 'return tx.get(keyOf, { key });', to: 'return Promise.resolve(undefined);' }],
});
