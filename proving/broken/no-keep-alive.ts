import { changeExports } from './patch.ts';

/** Lets the process exit while a mode of the daemon waits for a timer. */
changeExports({
  name: 'no-keep-alive',
  module: 'kernel/clock.ts',
  exports: {
    keepProcessAlive: () => (work: Promise<unknown>) => work,
  },
});
