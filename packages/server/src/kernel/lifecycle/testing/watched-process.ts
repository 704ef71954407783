import { spawn } from 'node:child_process';
import { keepProcessAlive, machineUptimeMs, systemClock } from '../../clock.ts';
import { jailPath, openJail } from '../../jail.ts';
import { silentLog } from '../../log.ts';
import { daemonVariable } from '../kill-processes.ts';
import { startLeaseWatchdog } from '../lease-watchdog.ts';

/*
 * Stands for a daemon with a lease: starts a jailed command that writes to a folder without end, and a program outside of a jail, and
 * prints the latter's pid. A time on its input, from now on, is passed to its watchdog as the one until which they may run.
 */
const folder = process.argv[2] ?? '';
const watchdog = startLeaseWatchdog({ clock: systemClock, log: silentLog });
watchdog.mayRunUntil(machineUptimeMs() + 60_000);
const jail = await openJail({ clock: systemClock });
const command = jail.run({
  argv: ['sh', '-c', 'while true; do echo x >>/folder/written; sleep 0.05; done'],
  cwd: '/folder',
  mounts: [{ from: folder, to: '/folder', writable: true }],
  env: { PATH: jailPath },
  network: false,
  limits: { memoryBytes: 256 * 1024 * 1024, processes: 16, cpuSeconds: 60, fileBytes: 1024 * 1024, openFiles: 64 },
});
command.stdout.resume();
command.stderr.resume();
const other = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', env: { PATH: '/usr/bin:/bin', [daemonVariable]: String(process.pid) } });
process.stdout.write(`${jail.unavailable ?? other.pid}\n`);
process.stdin.on('data', (chunk: Buffer) => {
  watchdog.mayRunUntil(machineUptimeMs() + Number(chunk.toString()));
  process.stdout.write('passed\n');
});
await keepProcessAlive(new Promise(() => {}));
