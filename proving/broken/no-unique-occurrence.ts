import { buildIn } from './patch.ts';

/** Allows two claims of one time: neither the record's key nor the advanced job prevents it. */
buildIn({
  name: 'no-unique-occurrence',
  module: 'features/unattended/cron/occurrences/occurrence-store.ts',
  replace: [
    { from: "triggerKind: p('trigger'),", to: "triggerKind: p('trigger'), triggerClass: p('executionId')," },
    { from: ".where('revision', '=', p('revision'))\n    .where('state', '=', 'scheduled')", to: '' },
    { from: "\n    .where(sql<boolean>`active_execution_id IS NULL`)\n    .where('highWaterMs', '<', p('highWaterMs'))", to: '' },
  ],
});
