import { changeExports } from './patch.ts';

/** Neither commits nor renewals compare the fence: a daemon that was taken for dead continues as the active one. */
changeExports({
  name: 'no-lease-fence',
  module: 'kernel/db/postgres/guard.ts',
  exports: { guardStatement: () => () => 'SELECT 1' },
});
changeExports({
  name: 'no-lease-fence',
  module: 'features/operations/nodes/lease/statements.ts',
  exports: {
    renewActive: () => `UPDATE node SET lease_until_ms = floor(extract(epoch from clock_timestamp()) * 1000)::bigint + $2, address = $3
      WHERE boot_id = $1 AND $4::bigint > 0 RETURNING floor(extract(epoch from clock_timestamp()) * 1000)::bigint AS "nowMs"`,
  },
});
