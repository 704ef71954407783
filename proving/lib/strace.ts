import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/** Why system calls cannot be traced here; undefined when they can. As root on Debian or Ubuntu the program is installed first. */
export function straceMissing(say: (line: string) => void): string | undefined {
  if (process.platform !== 'linux') return 'strace exists on Linux only';
  if (!works('strace') && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    say('strace is missing: installing the package by apt-get');
    const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const;
    if (spawnSync('apt-get', ['install', '-y', 'strace'], options).status !== 0) {
      spawnSync('apt-get', ['update'], options);
      spawnSync('apt-get', ['install', '-y', 'strace'], options);
    }
  }
  if (!works('strace')) return 'the program strace is missing (Debian and Ubuntu: apt-get install strace)';
  try {
    execFileSync('strace', ['-f', '-e', 'trace=write', '-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'strace may not trace processes here (ptrace is not permitted)';
  }
}

function works(program: string): boolean {
  return spawnSync(program, ['-V'], { stdio: 'ignore' }).status === 0;
}

/** Runs a program under strace in its own process id (`-D`); strings whole and in hex, descriptors with path or addresses. */
export function straceCommand(outputFile: string): string[] {
  return [
    'strace',
    '-D',
    '-f',
    '--seccomp-bpf',
    '-xx',
    '-yy',
    '-s',
    '131072',
    '-e',
    'signal=none',
    '-e',
    'trace=pwrite64,pwritev,pwritev2,write,writev,sendto,sendmsg,fdatasync,fsync',
    '-o',
    outputFile,
  ];
}

/** One system call; `start` and `end` are positions in the order in which strace saw calls start and return. */
export interface Call {
  readonly thread: string;
  readonly name: string;
  readonly fd: string;
  /** What the descriptor refers to: a path, or `TCP:[local->remote]`. */
  readonly on: string;
  /** The bytes that were written, as latin1. */
  readonly data: string;
  readonly start: number;
  /** Infinity while it has not returned. */
  end: number;
}

/** Reads the output of `straceCommand`, in order of `start`. */
export function parseStrace(text: string): Call[] {
  const calls: Call[] = [];
  const open = new Map<string, Call>();
  let position = 0;
  for (const line of text.split('\n')) {
    position += 1;
    const resumed = /^(\d+) +<\.\.\. (\w+) resumed>/.exec(line);
    if (resumed !== null) {
      const call = open.get(`${resumed[1]}`);
      if (call !== undefined) call.end = position;
      open.delete(`${resumed[1]}`);
      continue;
    }
    // Addresses are given as "local->remote", paths in hex.
    const begun = /^(\d+) +(\w+)\((\d+)<((?:[^>-]|->|-)*)>/.exec(line);
    if (begun === null) continue;
    const [head, thread = '', name = '', fd = '', on = ''] = begun;
    const call: Call = {
      thread,
      name,
      fd,
      on: unhex(on),
      data: stringsOf(line.slice(head.length)),
      start: position,
      end: line.endsWith('<unfinished ...>') ? Number.POSITIVE_INFINITY : position,
    };
    calls.push(call);
    if (call.end === Number.POSITIVE_INFINITY) open.set(thread, call);
  }
  return calls;
}

function unhex(text: string): string {
  return text.includes('\\x') ? Buffer.from(text.replaceAll('\\x', ''), 'hex').toString('latin1') : text;
}

function stringsOf(args: string): string {
  let data = '';
  for (const match of args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)) data += unhex(match[1] ?? '');
  return data;
}

/** Returns the output once strace has written all of it: the traced process is dead and the file no longer grows. */
export async function readStrace(outputFile: string): Promise<Call[]> {
  let before = -1;
  for (;;) {
    const text = await readFile(outputFile, 'latin1');
    if (text.length === before) return parseStrace(text);
    before = text.length;
    await pause(150);
  }
}
