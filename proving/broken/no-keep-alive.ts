import { buildIn } from './patch.ts';

/** Lets the process exit while a mode of the daemon waits for a timer. */
buildIn({
  name: 'no-keep-alive',
  module: 'kernel/clock.ts',
  replace: [{ from: 'const timer = setInterval(() => {}, 2 ** 31 - 1);', to: 'const timer = undefined;' }],
});
