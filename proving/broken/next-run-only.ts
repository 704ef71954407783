import { buildIn } from './patch.ts';

/** Advances a job to its next time without a trace of the missed ones. */
buildIn({
  name: 'next-run-only',
  module: 'features/unattended/cron/occurrences/claim.ts',
  replace: [{ from: 'skipped: missed.map(', to: 'skipped: missed.slice(missed.length).map(' }],
});
