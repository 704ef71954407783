import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { runCli } from '../cli.ts';
import type { Io } from '../io.ts';

export interface RunOptions {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Text on standard input. */
  readonly input?: string;
  readonly io?: Partial<Io>;
}

export interface RunOutcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Creates a user with an empty home folder who runs the command in this process. */
export async function createUser() {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-cli-'));
  return {
    dir,
    home: join(dir, '.gatehouse'),
    async run({ args, env = {}, input = '', io = {} }: RunOptions): Promise<RunOutcome> {
      const out = collector();
      const err = collector();
      const stdin = new PassThrough();
      stdin.end(input);
      const whole: Io = {
        stdin,
        stdout: out.stream,
        stderr: err.stream,
        env,
        userHome: dir,
        workingDir: dir,
        nodePath: process.execPath,
        daemonEntry: join(dir, 'main.js'),
        now: () => 1_790_000_000_000,
        onInterrupt: () => () => undefined,
        ...io,
      };
      return { code: await runCli(args, whole), out: out.text(), err: err.text() };
    },
    async [Symbol.asyncDispose]() {
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A writable that records its input; `seen` resolves when a text has arrived. */
export function collector() {
  let text = '';
  const waiting: { needle: string; resolve: () => void }[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      for (const one of waiting) if (text.includes(one.needle)) one.resolve();
      done();
    },
  });
  return {
    stream,
    text: () => text,
    seen: (needle: string) => (text.includes(needle) ? Promise.resolve() : new Promise<void>((resolve) => waiting.push({ needle, resolve }))),
  };
}
