import { buildIn } from './patch.ts';

/** Nothing keeps two runs apart that are one: a graph that goes on after a crash begins again what it had begun. */
buildIn({
  name: 'no-run-key',
  module: 'features/delegation/subagents/store.ts',
  replace: [{ from: 'return tx.get(keyOf, { key });', to: 'return Promise.resolve(undefined);' }],
});
