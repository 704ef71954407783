import type { Command } from 'commander';
import type { SetExit } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { requireDaemon, runDaemon } from './daemon-process.ts';
import { homeOption } from './options.ts';

/** `gatehouse start`: replaces this process with the daemon where the platform supports it, otherwise runs it as a child. */
export function addStartCommand(program: Command, io: Io, setExit: SetExit): void {
  program
    .command('start')
    .summary('start the daemon in the foreground')
    .description('Starts the daemon in the foreground. SIGTERM or Ctrl-C waits for running turns, a second one exits immediately.')
    .addOption(homeOption())
    .option('--port <n>', 'port to listen on (default: $GATEHOUSE_PORT, or the port in config.yaml)')
    .option('--host <address>', 'address to listen on (default: the one in config.yaml)')
    .action(async (flags: { home?: string; port?: string; host?: string }) => {
      await startInForeground(
        Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
        io,
        setExit,
      );
    });
}

/** Replaces this process with the daemon; where the platform does not support it, runs it as a child and passes on its exit code. */
export async function startInForeground(args: readonly string[], io: Io, setExit: SetExit): Promise<void> {
  requireDaemon(io);
  io.replaceProcess?.(io.nodePath, [io.daemonEntry, ...args], io.env);
  setExit(await runDaemon(args, io));
}
