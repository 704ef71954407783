import { buildIn } from './patch.ts';

/** Adds the time until the next match of the expression to now, as if no clock were ever changed. */
buildIn({
  name: 'naive-add',
  module: 'features/unattended/cron/schedule/schedule-cron.ts',
  replace: [
    {
      from: 'yield* pattern.named ? namedTimes(pattern, zone, afterMs) : realTime(pattern, zone, afterMs);',
      to: 'yield* naiveTimes(pattern, zone, afterMs);',
    },
    {
      from: 'function furthestWall(',
      to: `function* naiveTimes(pattern, zone, afterMs) {
  const aheadMs = wallAt(afterMs, zone) - afterMs;
  let wall = afterMs + aheadMs;
  while ((wall = pattern.next(wall)) !== undefined) yield wall - aheadMs;
}
function furthestWall(`,
    },
  ],
});
