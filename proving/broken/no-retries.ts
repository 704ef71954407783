import { buildIn } from './patch.ts';

/** Reports each conflict with another transaction to the caller, instead of running the write again. */
buildIn({
  name: 'no-retries',
  module: 'kernel/db/postgres/transaction.ts',
  replace: [
    { from: 'const maxRetries = 8;', to: 'const maxRetries = 0;' },
    { from: 'const maxBatchRetries = 2;', to: 'const maxBatchRetries = 0;' },
  ],
});
