import { buildIn } from './patch.ts';

/** Refuses an address that guessed too often before checking its secret. */
buildIn({
  name: 'locked-address',
  module: 'gateway/auth.ts',
  replace: [
    {
      from: 'if (identity !== undefined) return identity;',
      to: 'if (identity !== undefined && failures.peek(address.key).allowed) return identity;',
    },
  ],
});
