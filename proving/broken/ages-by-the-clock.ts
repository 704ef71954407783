import { buildIn } from './patch.ts';

/** Measures ages by the clock, even when it is wrong. */
buildIn({
  name: 'ages-by-the-clock',
  module: 'features/operations/age-clock/age-clock.ts',
  replace: [{ from: 'if (isOff && this.#doubtedMs < believedAfterMs) return offMs;', to: '' }],
});
