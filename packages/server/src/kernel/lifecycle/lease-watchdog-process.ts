import { killDescendants, killLeftBehind } from './kill-processes.ts';
import { machineUptimeMs, systemClock } from '../clock.ts';

/*
 * A separate process, so that it runs while the daemon is frozen. Each line of its input is the time of the machine until which the
 * daemon may have programs running, or `end`. When that time has passed it kills them, until a later time arrives; when the input
 * ends without `end`, the daemon is dead, and it kills what is left.
 */

const checkMs = 250;
const leftChecks = 8;

const daemonPid = Number(process.argv[2]);
let untilMs = Number.POSITIVE_INFINITY;
let rest = '';

// A service manager signals all processes of a service, and the daemon still drains.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) {
    if (line === 'end') process.exit();
    untilMs = Number(line);
  }
});
process.stdin.on('error', () => {});
process.stdin.on('close', () => endLeft(leftChecks));

function check(): void {
  if (machineUptimeMs() >= untilMs) killDescendants(daemonPid);
  systemClock.after(checkMs, check);
}
check();

function endLeft(checks: number): void {
  const left = killLeftBehind(daemonPid);
  if (left === 0 && checks < leftChecks - 1) process.exit();
  if (checks > 0) systemClock.after(checkMs, () => endLeft(checks - 1));
  else process.exit();
}

// Timers of the clock do not keep the process alive, and neither does an input that has ended.
setInterval(() => {}, 2 ** 31 - 1);
