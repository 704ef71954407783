import { buildIn } from './patch.ts';

/** Reports each write whose connection ended before its commit to the caller, instead of running it again on the next one. */
buildIn({
  name: 'lost-fails',
  module: 'kernel/db/postgres/transaction.ts',
  replace: [{ from: 'lostAt ??= clock.monotonic();', to: 'lostAt = Number.NEGATIVE_INFINITY;' }],
});
