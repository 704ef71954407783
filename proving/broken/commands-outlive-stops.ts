import { buildIn } from './patch.ts';

/** Commands in the background hear of no stop. */
buildIn({
  name: 'commands-outlive-stops',
  module: 'features/environment/shell/background-commands.ts',
  replace: [{ from: 'for (const { process } of ended) process.kill();', to: '' }],
});
