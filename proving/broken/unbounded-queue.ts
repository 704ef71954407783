import { buildIn } from './patch.ts';

/** Accepts and queues every request, however many wait already. */
buildIn({
  name: 'unbounded-queue',
  module: 'kernel/lane.ts',
  replace: [
    { from: '      this.#refuseWhenFull(lane, entry.principalId);\n', to: '' },
    { from: '      if (isNext) this.#refuseWhenLate(this.#groupOf(entry), entry.principalId);\n', to: '' },
  ],
});
