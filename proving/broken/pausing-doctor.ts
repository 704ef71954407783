import { buildIn } from './patch.ts';

/** No fault: the check of the jail waits for a timer of the clock, as it does where a control group is busy for a moment. */
buildIn({
  name: 'pausing-doctor',
  module: 'process/doctor-machine.ts',
  replace: [
    {
      from: 'await using jail = await openJail({ clock });',
      to: 'await new Promise((resolve) => clock.after(50, resolve)); await using jail = await openJail({ clock });',
    },
  ],
});
