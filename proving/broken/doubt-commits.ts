import { changeExports } from './patch.ts';

/** Acknowledges a commit whose answer was lost, without finding out what became of it. */
changeExports({
  name: 'doubt-commits',
  module: 'kernel/db/postgres/in-doubt.ts',
  exports: { findOutcome: () => async () => 'committed' },
});
