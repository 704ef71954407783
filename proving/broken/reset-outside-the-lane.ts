import { buildIn } from './patch.ts';

/** A conversation is erased while a turn runs in it. */
buildIn({
  name: 'reset-outside-the-lane',
  module: 'features/conversations/sessions/changes/changing.ts',
  replace: [{ from: 'return deps.alone(ref, call, run);', to: 'return run();' }],
});
