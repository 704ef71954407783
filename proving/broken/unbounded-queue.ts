import { buildIn } from './patch.ts';

/** Accepts and queues every request, however many wait already. */
buildIn({
  name: 'unbounded-queue',
  module: 'kernel/lane.ts',
  replace: [
    { from: '        refuseWhenFull(lane, entry.principalId);\n', to: '' },
    { from: '        if (isNext) refuseWhenLate(groupOf(entry), entry.principalId);\n', to: '' },
  ],
});
