import { buildIn } from './patch.ts';

/** Starts overdue occurrences as fast as possible. */
buildIn({
  name: 'replay-all',
  module: 'features/unattended/cron/occurrences/scheduler.ts',
  replace: [{ from: 'const catchUp = { spacingMs: 5_000, atOnce: 5 };', to: 'const catchUp = { spacingMs: 0, atOnce: 1_000_000 };' }],
});
