import { spawn } from 'node:child_process';
import { findCommand } from '../../tools/system-packages.mjs';

/** Path of `script` of util-linux, which runs a program on a terminal; undefined elsewhere: that of other systems takes other arguments. */
export const scriptPath = process.platform === 'linux' ? findCommand('script') : undefined;

/** A program on a pseudo-terminal, as a person would use it. */
export interface Terminal extends AsyncDisposable {
  /** Everything that the terminal has shown. */
  shown(): string;
  /** Waits until a text appears after the last one that was waited for. */
  sees(text: string): Promise<void>;
  type(keys: string): void;
  readonly exit: Promise<number | null>;
}

const columns = 100;

export function openTerminal(
  command: readonly string[],
  { env, cwd }: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
): Terminal {
  if (scriptPath === undefined) throw new Error('there is no `script` on this machine');
  // Without a terminal behind it, `script` makes one of no size.
  const size = `stty columns ${columns} rows 40 && exec`;
  const line = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const child = spawn(scriptPath, ['--quiet', '--flush', '--return', '--command', `${size} ${line}`, '/dev/null'], {
    env: { ...env },
    cwd,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  let shown = '';
  let read = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  return {
    shown: () => shown,
    type: (keys) => void child.stdin.write(keys),
    exit,
    // Closing its terminal stops the program.
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exit;
    },
    async sees(text) {
      const deadline = performance.now() + 20_000;
      for (;;) {
        const at = shown.indexOf(text, read);
        if (at >= 0) {
          read = at + text.length;
          return;
        }
        if (performance.now() > deadline || child.exitCode !== null)
          throw new Error(`The terminal does not show ${JSON.stringify(text)}, but:\n${shown.slice(read)}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  };
}
