import { buildIn } from './patch.ts';

/** Not a fault: the check of the jail waits for a timer of the clock, as it does when a control group is briefly busy. */
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
