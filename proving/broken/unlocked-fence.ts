import { buildIn } from './patch.ts';

/** Checks the claim of an owner without holding it until the commit: a write that is late by the clock is ordered before the take-over. */
buildIn({
  name: 'unlocked-fence',
  module: 'features/unattended/durable/store.ts',
  replace: [
    {
      from: ".where('state', '=', 'running')\n    .forShare(),",
      to: ".where('state', '=', 'running'),",
    },
  ],
});
