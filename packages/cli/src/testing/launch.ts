import { runCli } from '../cli.ts';

/** Runs the command in a separate process with another daemon file: `launch.ts replace|child DAEMON ARGS…`. */
const [way, daemonEntry = '', ...args] = process.argv.slice(2);

process.exitCode = await runCli(args, {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  userHome: '/nonexistent',
  workingDir: process.cwd(),
  nodePath: process.execPath,
  daemonEntry,
  now: () => 0,
  onInterrupt: () => () => undefined,
  ...(way === 'replace' ? { replaceProcess: (file, given, env): never => process.execve?.(file, [file, ...given], { ...env }) as never } : {}),
});
