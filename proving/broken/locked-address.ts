import { buildIn } from './patch.ts';

/** An address that guessed too often is refused before its secret is looked at. */
buildIn({
  name: 'locked-address',
  module: 'gateway/auth.ts',
  replace: [
    {
      from: 'if (identity !== undefined) return identity;',
      to: 'if (identity !== undefined && (failures.get(address.key)?.waitMs(clock.monotonic()) ?? 0) === 0) return identity;',
    },
  ],
});
