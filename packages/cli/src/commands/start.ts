import type { Command } from 'commander';
import type { Io } from '../io.ts';
import { requireDaemon, runDaemon } from './daemon-process.ts';
import { homeOption } from './options.ts';

/** `gatehouse start`: becomes the daemon where the platform can replace a process, else runs it as a child. */
export function addStartCommand(program: Command, io: Io, setExit: (code: number) => void): void {
  program
    .command('start')
    .summary('start the daemon in the foreground')
    .description('Starts the daemon in the foreground. SIGTERM or Ctrl-C lets running turns end, a second one ends at once.')
    .addOption(homeOption())
    .option('--port <n>', 'port to listen on (default: $GATEHOUSE_PORT or that of config.yaml)')
    .option('--host <address>', 'address to listen on (default: that of config.yaml)')
    .action(async (flags: { home?: string; port?: string; host?: string }) => {
      requireDaemon(io);
      const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
      io.replaceProcess?.(io.nodePath, [io.daemonEntry, ...args], io.env);
      setExit(await runDaemon(args, io));
    });
}
