import { buildIn } from './patch.ts';

/** A channel whose platform is away, or whose account another client uses, is connected again every second. */
buildIn({
  name: 'channel-connects-at-once',
  module: 'features/channels/instances/instance.ts',
  replace: [
    { from: 'const conflictPauseMs = 60_000;', to: 'const conflictPauseMs = 1_000;' },
    { from: 'const longestMs = this.failures > triesUntilSlow ? slowPauseMs : longestPauseMs;', to: 'const longestMs = firstPauseMs;' },
  ],
});
