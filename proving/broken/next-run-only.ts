import { changeExports } from './patch.ts';

import type { planClaim } from '../../packages/server/src/features/unattended/cron/occurrences/claim.ts';

/** Advances a job to its next time without a trace of the missed ones. */
changeExports({
  name: 'next-run-only',
  module: 'features/unattended/cron/occurrences/claim.ts',
  exports: {
    planClaim:
      (original: typeof planClaim) =>
      (...claim: Parameters<typeof planClaim>) => ({ ...original(...claim), skipped: [] }),
  },
});
