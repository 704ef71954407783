import { buildIn } from './patch.ts';

/** Stops without waiting for or releasing anything. */
buildIn({
  name: 'exit-at-once',
  module: 'process/daemon.ts',
  replace: [{ from: 'life.stop().then(', to: 'Promise.resolve().then(' }],
});
