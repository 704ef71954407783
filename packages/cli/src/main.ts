import { spawn } from 'node:child_process';
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

/** Programs that open an address in the browser. */
const openers: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: 'open', linux: 'xdg-open' };
const opener = openers[process.platform];

function openWith(program: string, url: string): void {
  // The address is printed as well, so a machine without a browser loses nothing.
  spawn(program, [url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref();
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
  ...(opener !== undefined && { openBrowser: (url) => openWith(opener, url) }),
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
