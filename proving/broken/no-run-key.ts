import { changeExports } from './patch.ts';

/** Ignores run keys, so that a graph resumed after a crash starts its runs a second time. */
changeExports({
  name: 'no-run-key',
  module: 'features/delegation/subagents/store.ts',
  exports: {
    findKey: () => async () => undefined,
  },
});
