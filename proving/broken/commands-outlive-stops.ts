import { buildIn } from './patch.ts';

/** Background commands ignore every stop. */
buildIn({
  name: 'commands-outlive-stops',
  module: 'features/environment/shell/background-commands.ts',
  replace: [{ from: 'for (const { process } of ended) process.kill();', to: '' }],
});
