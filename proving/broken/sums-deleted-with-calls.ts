import { buildIn } from './patch.ts';

/** Deletes old calls without their sums. */
buildIn({
  name: 'sums-deleted-with-calls',
  module: 'features/access/budgets/usage/past-store.ts',
  replace: [
    {
      from: 'if (ids.length === 0) return 0;',
      to: "if (ids.length > 0) await tx.build((db) => db.deleteFrom('modelCall').where('id', 'in', ids)); if (ids.length >= 0) return ids.length;",
    },
  ],
});
