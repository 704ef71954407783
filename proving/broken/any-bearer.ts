import { buildIn } from './patch.ts';

/** Whoever comes to the capability socket while a script runs is that script, whatever it shows. */
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
