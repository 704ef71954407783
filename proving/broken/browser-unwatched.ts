import { buildIn } from './patch.ts';

/** Never asks a silent browser whether it works. */
buildIn({
  name: 'browser-unwatched',
  module: 'features/environment/browser/engine/session.ts',
  replace: [{ from: 'const slowMs = 4_000;', to: 'const slowMs = 86_400_000;' }],
});
