import { styleText } from 'node:util';
import { AppError } from '../kernel/app-error.ts';
import { exitCodeOf } from './exit-code-of.ts';
import { exitCodes } from './exit-codes.ts';
import { greetingLines } from './greeting.ts';
import { keepProcessAlive, systemClock } from '../kernel/clock.ts';
import { isSecretName } from '../kernel/config/secrets.ts';
import { isOutOfDescriptors } from '../kernel/descriptors.ts';
import { diskFullError } from '../kernel/disk-space.ts';
import { isSupervised, notifySupervisor } from '../kernel/lifecycle/notify.ts';
import { createLogger } from '../kernel/logger.ts';
import { createRedactor } from '../kernel/redact.ts';
import { ServerLife } from './server-life.ts';
import { parseArguments, type StartArguments, usage } from './start-arguments.ts';
import { version } from '../version.ts';

/** npm passes on a signal that its child already got from the terminal; both arrive within this time. */
const echoMs = 150;

/**
 * The daemon of this process: starts it, prints what a person needs, and then handles signals. Resolves when it is
 * started; a failed start exits with a code of `exitCodes`.
 */
export async function runDaemon(process: NodeJS.Process): Promise<void> {
  const { env } = process;
  const args = parseArguments(process.argv.slice(2), env, process.cwd());
  // Nothing that the daemon or its libraries write (SQLite makes its files readable for all) is for others to read.
  process.umask(0o077);
  // Do not stop because a reader stops after the first lines (`| head`).
  process.stdout.on('error', () => {});
  if (args.kind !== 'start') return keepProcessAlive(runMode(args, process));

  const redactor = createRedactor(Object.entries(env).flatMap(([name, value]) => (isSecretName(name) && value !== undefined ? [value] : [])));
  const { stderr } = process;
  const terminal = stderr.isTTY ? { color: stderr.hasColors(env) } : undefined;
  const logger = createLogger({ level: 'info', redact: redactor.redact, terminal, firstLineId: systemClock.now() * 1000 });
  const { log } = logger;
  const end = (code: number): never => {
    logger.flush();
    process.exit(code);
  };
  const notify = (state: 'READY=1' | 'STOPPING=1'): void =>
    notifySupervisor(state, env, (error) => log.warn({ err: error }, 'Failed to notify the service manager'));
  const onStandby = (address: string | null): void => {
    logger.flush();
    process.stdout.write(`Standby: another node is active${address === null ? '' : `\n${address}`}\n`);
    notify('READY=1');
  };
  const onLost = (): void => {
    log.fatal({}, 'Another node took over from this one, which could not renew its lease in time: ending at once');
    end(exitCodes.lease.code);
  };
  const watchdog = !process.execArgv.some((flag) => flag.startsWith('--inspect'));
  const life = new ServerLife({ args, env, logger, redactor, watchdog, onDeath: () => end(exitCodes.internal.code), onStandby, onLost });

  process.on('uncaughtException', (error, origin) => {
    // Only the requested operation fails; its caller gets the error, and everything else continues.
    if (origin === 'unhandledRejection' && isOutOfDescriptors(error)) return log.error({ err: error }, 'Too many files and sockets are open');
    log.fatal({ err: error, origin }, 'Uncaught error: stopping the daemon');
    life.announceFault(origin);
    end(exitCodes.internal.code);
  });

  let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (first !== undefined) {
      const echo = env['npm_lifecycle_event'] !== undefined && signal === first.signal && systemClock.monotonic() - first.atMs < echoMs;
      if (!echo) end(signal === 'SIGINT' ? exitCodes.interrupted.code : exitCodes.terminated.code);
      return;
    }
    first = { signal, atMs: systemClock.monotonic() };
    notify('STOPPING=1');
    log.info({ signal }, 'Stopping: waiting for running turns; a second signal stops immediately');
    life.stop().then(
      () => {
        log.info({}, 'Stopped');
        end(exitCodes.ok.code);
      },
      (error: unknown) => {
        log.fatal({ err: error }, 'The stop failed');
        end(exitCodes.internal.code);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);

  try {
    const greeting = await keepProcessAlive(life.start());
    const paint = (style: 'bold' | 'yellow') => (text: string) => (process.stdout.isTTY ? styleText(style, text) : text);
    if (greeting === undefined) return;
    const where = { terminal: process.stdout.isTTY, supervised: isSupervised(env), bold: paint('bold'), yellow: paint('yellow') };
    logger.flush();
    process.stdout.write(`${greetingLines(greeting, where).join('\n')}\n`);
    notify('READY=1');
  } catch (error) {
    const code = exitCodeOf(error);
    logger.flush();
    const fault = code === exitCodes.disk.code ? diskFullError(args.home, error) : error;
    const isUnexpected = code === exitCodes.internal.code && !(fault instanceof AppError && fault.code !== 'internal');
    const text = fault instanceof Error ? (isUnexpected ? (fault.stack ?? fault.message) : fault.message) : String(fault);
    process.stderr.write(`${redactor.redact(text).replaceAll(/^/gm, 'gatehouse: ')}\n`);
    end(code);
  }
}

/** Runs the command's other requests to this file; each prints its result and exits (packages/cli/README.md). */
async function runMode(args: Exclude<StartArguments, { kind: 'start' }>, { stdout, stderr, env }: NodeJS.Process): Promise<void> {
  const print = (value: object) => void stdout.write(`${JSON.stringify(value)}\n`);
  switch (args.kind) {
    case 'wrong':
      stderr.write(`gatehouse: ${args.message}\n`);
      process.exitCode = exitCodes.usage.code;
      return;
    case 'help':
      stdout.write(usage);
      return;
    case 'version':
      stdout.write(`${version}\n`);
      return;
    case 'backup':
      return (await import('./maintenance.ts')).runBackup(args.home, args.file, env, print);
    case 'restore':
      return (await import('./maintenance.ts')).runRestore(args.home, args.file, env, print);
    case 'storage-import':
      return (await import('./maintenance.ts')).runStorageImport(args.home, args.to, env, print);
    case 'install-key':
      return (await import('./maintenance.ts')).runInstallKey(args.home, args.to, env, print);
    case 'config-check':
      return print(await (await import('./check-config.ts')).checkConfig(args.home, args.file, env));
    case 'doctor':
      return print({ checks: await (await import('./doctor.ts')).examine(args.home, env) });
  }
}
