import { buildIn } from './patch.ts';

/** Whatever is asked for is taken and waits, however many wait already. */
buildIn({
  name: 'unbounded-queue',
  module: 'kernel/lane.ts',
  replace: [
    { from: '        refuseWhenFull(lane, entry.principalId);\n', to: '' },
    { from: '        if (isNext) refuseWhenLate(groupOf(entry), entry.principalId);\n', to: '' },
  ],
});
