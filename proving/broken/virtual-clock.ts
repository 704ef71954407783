import { buildIn } from './patch.ts';

/** Not a fault: the clock of the daemon is `CLOCK_AHEAD_MS` ahead of the real one and runs `CLOCK_SPEED` times as fast. */
buildIn({
  name: 'virtual-clock',
  module: 'kernel/clock.ts',
  replace: [
    { from: 'now: () => Date.now(),', to: `now: () => Math.floor(begun + ahead + (Date.now() - begun) * speed),` },
    { from: 'monotonic: () => performance.now(),', to: 'monotonic: () => performance.now() * speed,' },
    { from: 'setTimeout(run, ms)', to: 'setTimeout(run, ms / speed)' },
    {
      from: 'export const systemClock: Clock = {',
      to: `const begun = Date.now();
const ahead = Number(process.env['CLOCK_AHEAD_MS'] ?? 0);
const speed = Number(process.env['CLOCK_SPEED'] ?? 1);
export const systemClock: Clock = {`,
    },
  ],
});
// Load is measured in real time: at high speed a busy machine would be thirty seconds late at once.
buildIn({
  name: 'virtual-clock',
  module: 'kernel/lifecycle/watchdog.ts',
  replace: [{ from: 'const silentChecks = 6;', to: `const silentChecks = 6 * Number(process.env['CLOCK_SPEED'] ?? 1);` }],
});
buildIn({
  name: 'virtual-clock',
  module: 'kernel/lifecycle/load.ts',
  replace: [{ from: 'const lateMs = 200;', to: `const lateMs = 200 * Number(process.env['CLOCK_SPEED'] ?? 1);` }],
});
