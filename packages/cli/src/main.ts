import { existsSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { fileURLToPath } from 'node:url';
import { runCli } from './cli.ts';
import type { Io } from './io.ts';

/** Next to this file in the bundle; the daemon's source when this file runs from source. */
function findDaemonEntry(): string {
  const bundled = fileURLToPath(new URL('./main.js', import.meta.url));
  const source = fileURLToPath(new URL('../../server/src/main.ts', import.meta.url));
  return existsSync(bundled) || !existsSync(source) ? bundled : source;
}

const io: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  // With an empty HOME, uses the home of the account.
  userHome: homedir() || userInfo().homedir,
  workingDir: process.cwd(),
  nodePath: process.execPath,
  daemonEntry: findDaemonEntry(),
  now: () => Date.now(),
  onInterrupt(handler) {
    process.on('SIGINT', handler);
    return () => process.off('SIGINT', handler);
  },
  ...(process.platform === 'win32' || process.execve === undefined
    ? {}
    : { replaceProcess: (file, args, env) => process.execve?.(file, [file, ...args], { ...env }) as never }),
};

// A reader that closes the pipe (`gatehouse call … | head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exitCode = await runCli(process.argv.slice(2), io);
