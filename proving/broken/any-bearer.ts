import { buildIn } from './patch.ts';

/** Treats every client of the capability socket as the running script, regardless of its bearer. */
buildIn({
  name: 'any-bearer',
  module: 'features/delegation/orchestrate/scripts/scripts.ts',
  replace: [
    {
      from: 'return lease === undefined ? undefined : this.#active.get(lease.id);',
      to: 'return lease === undefined ? [...this.#active.values()][0] : this.#active.get(lease.id);',
    },
  ],
});
