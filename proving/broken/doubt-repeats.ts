import { changeExports } from './patch.ts';

/** Runs a write again whose commit lost its answer, without finding out what became of the first one. */
changeExports({
  name: 'doubt-repeats',
  module: 'kernel/db/postgres/in-doubt.ts',
  exports: { findOutcome: () => async () => 'aborted' },
});
