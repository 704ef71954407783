import { buildIn } from './patch.ts';

/** Ages are counted by the clock, wherever it stands. */
buildIn({
  name: 'ages-by-the-clock',
  module: 'features/operations/age-clock/age-clock.ts',
  replace: [{ from: 'if (isOff && doubtedMs < believedAfterMs) return offMs;', to: '' }],
});
