import { buildIn } from './patch.ts';

/** Claims work as one process may that is alone: it takes by their ids what it has read, without a lock, in READ COMMITTED. */
buildIn({
  name: 'unlocked-claims',
  module: 'features/unattended/durable/store.ts',
  replace: [
    {
      from: ".orderBy('notBeforeMs')\n    .orderBy('id')\n    .limit(p('limit'))\n    .forUpdate()\n    .skipLocked(),",
      to: ".orderBy('notBeforeMs').orderBy('id').limit(p('limit')),",
    },
    {
      from: ".orderBy('leaseUntilMs')\n    .orderBy('id')\n    .limit(p('limit'))\n    .forUpdate()\n    .skipLocked(),",
      to: ".orderBy('leaseUntilMs').orderBy('id').limit(p('limit')),",
    },
  ],
});
