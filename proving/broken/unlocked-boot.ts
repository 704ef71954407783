import { buildIn } from './patch.ts';

/** Checks that a daemon may write without holding that until the commit: what it stores may come after the claim of its boot. */
buildIn({
  name: 'unlocked-boot',
  module: 'kernel/owners.ts',
  replace: [{ from: ".where('state', 'in', ['live', 'draining']).forKeyShare()", to: ".where('state', 'in', ['live', 'draining'])" }],
});
