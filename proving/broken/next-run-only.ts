import { buildIn } from './patch.ts';

/** A job goes on to its next time, and what it missed leaves no trace. */
buildIn({
  name: 'next-run-only',
  module: 'features/unattended/cron/occurrences/claim.ts',
  replace: [{ from: 'skipped: missed.map(', to: 'skipped: missed.slice(missed.length).map(' }],
});
