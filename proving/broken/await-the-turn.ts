import { buildIn } from './patch.ts';

/** Delays the response to a webhook until its turn has ended. */
buildIn({
  name: 'await-the-turn',
  module: 'features/unattended/webhooks/deliveries/deliver.ts',
  replace: [
    {
      from: 'if (ownState === null) deps.durable.wake(deliveryKind);',
      to: `if (ownState === null) {
        deps.durable.wake(deliveryKind);
        const { listDeliveries } = await import('../store.ts');
        for (let state = 'accepted'; state === 'accepted' || state === 'running'; ) {
          const rows = await db.read(listDeliveries, { sinceMs: 0, limit: 1000 });
          state = rows.find((row) => row.id === id)?.state ?? 'done';
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }`,
    },
  ],
});
