import { buildIn } from './patch.ts';

/** A stop waits for nothing and releases nothing. */
buildIn({
  name: 'exit-at-once',
  module: 'process/daemon.ts',
  replace: [{ from: 'life.stop().then(', to: 'Promise.resolve().then(' }],
});
