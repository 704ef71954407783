import { buildIn } from './patch.ts';

/** A kill is written down, and whatever runs goes on until it asks. */
buildIn({
  name: 'kill-without-stop',
  module: 'features/delegation/autonomy/methods.ts',
  replace: [{ from: "const killed = 1 + (await stopAll(rootRunId, 'kill'));", to: 'const killed = 1;' }],
});
