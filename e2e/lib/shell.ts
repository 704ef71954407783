import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { root } from '../../proving/lib/daemon.ts';

/** A bash that runs the blocks of a guide one after the other, as if pasted: variables and background processes stay. */
export interface Shell extends AsyncDisposable {
  /** Returns what a block printed; fails when one of its commands fails. */
  run(block: string): Promise<string>;
}

/** Blocks come as files: no command can read the following ones as its input. A NUL, which no text has, ends the output of each. */
const loop = String.raw`set -e; while read -r file <&3; do . "$file" 3<&-; printf '\0'; done`;

/** Starts a shell in the repository, with its files in `folder`. What it started and did not stop is killed with it. */
export function openShell(folder: string, env: NodeJS.ProcessEnv): Shell {
  // A separate process group, which its background processes belong to.
  const child = spawn('bash', ['-c', loop], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const [, stdout, stderr, blocks] = child.stdio;
  if (stdout === null || stderr === null || !(blocks instanceof Writable)) throw new Error('The shell has no pipes');
  let errors = '';
  stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const output = stdout.setEncoding('utf8')[Symbol.asyncIterator]();
  let count = 0;

  return {
    async run(block) {
      errors = '';
      const file = join(folder, `block-${(count += 1)}.sh`);
      await writeFile(file, block);
      blocks.write(`${file}\n`);
      let said = '';
      while (!said.endsWith('\0')) {
        const { value, done } = await output.next();
        // Background processes write to files: the output ends with the shell, at the first command that fails.
        if (done === true) throw new Error(`A command failed:\n${block}\n${said}\n${errors}`);
        said += String(value);
      }
      return said.slice(0, -1);
    },
    async [Symbol.asyncDispose]() {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nothing of the group is left.
      }
      await ended;
    },
  };
}
