import { changeExports } from './patch.ts';

import type { Clock } from '../../packages/server/src/kernel/clock.ts';
import type { checkJail } from '../../packages/server/src/process/doctor-machine.ts';

/** Not a fault: the check of the jail waits for a timer of the clock, as it does when a control group is briefly busy. */
changeExports({
  name: 'pausing-doctor',
  module: 'process/doctor-machine.ts',
  exports: {
    checkJail: (original: typeof checkJail) => async (clock: Clock) => {
      await new Promise<void>((resolve) => {
        clock.after(50, resolve);
      });
      return original(clock);
    },
  },
});
