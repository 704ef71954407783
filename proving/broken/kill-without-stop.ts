import { buildIn } from './patch.ts';

/** Records a kill without stopping anything: running work continues until its next check. */
buildIn({
  name: 'kill-without-stop',
  module: 'features/delegation/autonomy/methods.ts',
  replace: [{ from: "const killed = 1 + (await stopAll(rootRunId, 'kill'));", to: 'const killed = 1;' }],
});
