import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { findCommand } from '../../../../tools/system-packages.mjs';
import { systemClock } from './clock.ts';
import { type Jail, jailPath, openJail } from './jail.ts';
import { seccompFilter } from './jail-seccomp.ts';

const audit = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003, arm: 0x40000028 };

/** What the kernel does with a call: runs the program over `struct seccomp_data`. */
function verdict(architecture: 'x64' | 'arm64', number: number, args: readonly number[] = [], from: number = audit[architecture]): string {
  const program = seccompFilter(architecture);
  if (program === undefined) throw new Error('no filter');
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(from, 4);
  for (const [index, value] of args.entries()) data.writeBigUInt64LE(BigInt(value), 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length; at += 8) {
    const code = program.readUInt16LE(at);
    const k = program.readUInt32LE(at + 4);
    const jump = (met: boolean) => (at += 8 * program.readUInt8(at + (met ? 2 : 3)));
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x15) jump(accumulator === k);
    else if (code === 0x25) jump(accumulator > k);
    else if (code === 0x45) jump((accumulator & k) !== 0);
    else if (code === 0x06) return k === 0x7fff0000 ? 'allowed' : k === 0x80000000 ? 'ended' : `errno ${k - 0x50000}`;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error('the program ends without an answer');
}

const [eperm, einval, enosys, enoproto, enofamily] = ['errno 1', 'errno 22', 'errno 38', 'errno 93', 'errno 97'];

describe.each(['x64', 'arm64'] as const)('the filter of system calls for %s', (architecture) => {
  const number = (x64: number, arm64: number) => (architecture === 'x64' ? x64 : arm64);
  const call = (x64: number, arm64: number, ...args: number[]) => verdict(architecture, number(x64, arm64), args);

  it('allows the socket families that programs need, and no other', () => {
    for (const family of [1, 2, 10]) expect(call(41, 198, family, 1)).toBe('allowed');
    expect(call(41, 198, 16, 3, 0)).toBe('allowed');
    expect(call(41, 198, 16, 3, 12)).toBe(enoproto);
    for (const family of [0, 17, 21, 30, 31, 38, 40, 44]) {
      expect(call(41, 198, family, 1)).toBe(enofamily);
      expect(call(53, 199, family, 1)).toBe(enofamily);
    }
    expect(call(53, 199, 1, 1)).toBe('allowed');
  });

  it('makes threads and processes, but no namespaces', () => {
    expect(call(56, 220, 0x3d0f00)).toBe('allowed');
    expect(call(56, 220, 0x01200011)).toBe('allowed');
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(call(56, 220, flag | 17)).toBe(eperm);
      expect(call(272, 97, flag)).toBe(eperm);
    }
    expect(call(272, 97, 0x80)).toBe(eperm);
    expect(call(272, 97, 0x400)).toBe('allowed');
    expect(call(435, 435)).toBe(enosys);
    expect(call(308, 268)).toBe(eperm);
  });

  it('bounds shared memory of System V by page and number', () => {
    expect(call(29, 194, 0, 56)).toBe('allowed');
    expect(call(29, 194, 0, 4096)).toBe('allowed');
    expect(call(29, 194, 0, 4097)).toBe(einval);
    expect(call(29, 194, 0, 2 ** 32 + 1)).toBe(einval);
    expect(call(68, 186)).toBe(enosys);
  });

  it('refuses calls that reach into the kernel or other processes, with errors that programs expect', () => {
    for (const [x64, arm64] of [
      [323, 282],
      [248, 217],
      [249, 218],
      [250, 219],
      [321, 280],
      [298, 241],
      [101, 117],
      [310, 270],
      [311, 271],
      [438, 438],
      [165, 40],
      [166, 39],
      [155, 41],
      [161, 51],
      [304, 265],
      [246, 104],
      [320, 294],
      [313, 273],
    ] as const)
      expect(call(x64, arm64)).toBe(eperm);
    for (const same of [425, 426, 427, 428, 429, 430, 431, 432, 433, 442, 447, 467]) expect(call(same, same)).toBe(enosys);
    // read, exit_group, futex, rseq, memfd_create, landlock_create_ruleset, openat2.
    for (const [x64, arm64] of [
      [0, 63],
      [231, 94],
      [202, 98],
      [334, 293],
      [319, 279],
      [444, 444],
      [437, 437],
    ] as const)
      expect(call(x64, arm64)).toBe('allowed');
  });

  it('handles calls of other tables and of later kernels', () => {
    for (const later of [470, 1000, 0x40000000, 0x40000029, 0xffffffff]) expect(verdict(architecture, later)).toBe(enosys);
    for (const from of [audit.i386, audit.arm, architecture === 'x64' ? audit.arm64 : audit.x64])
      expect(verdict(architecture, 0, [], from)).toBe('ended');
  });
});

it('there is no filter for machines whose calls were not reviewed', () => {
  expect(seccompFilter('riscv64')).toBeUndefined();
});

async function run(jail: Jail, argv: readonly [string, ...string[]]) {
  const limits = { memoryBytes: 512 * 1024 * 1024, processes: 60, cpuSeconds: 30, fileBytes: 64 * 1024 * 1024, openFiles: 256 };
  const started = jail.run({ argv, cwd: '/tmp', mounts: [], env: { PATH: jailPath, HOME: '/home/agent' }, network: false, limits });
  let text = '';
  for (const stream of [started.stdout, started.stderr]) stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  started.stdin.end();
  return { ...(await started.ended), text };
}

describe.skipIf(findCommand('bwrap') === undefined)('in a jail', () => {
  it('calls that reach out of it or into the kernel are refused', async () => {
    await using jail = await openJail({ clock: systemClock });
    const on = (x64: number, arm64: number) => (process.arch === 'x64' ? x64 : arm64);
    const calls = {
      'socket vsock': [on(41, 198), 40, 1, 0],
      'socket inet': [on(41, 198), 2, 1, 0],
      'socket alg': [on(41, 198), 38, 5, 0],
      io_uring_setup: [425, 4, 0],
      userfaultfd: [on(323, 282), 1],
      keyctl: [on(250, 219), 0, -3, 0],
      bpf: [on(321, 280), 0, 0, 0],
      ptrace: [on(101, 117), 0, 0, 0, 0],
      'unshare user': [on(272, 97), 0x10000000],
      'shmget 100 MB': [on(29, 194), 0, 100_000_000, 0o1600],
      'shmget 56 B': [on(29, 194), 0, 56, 0o1600],
      x32: [0x40000027],
    };
    const perl = Object.entries(calls).map(([name, numbers]) => `$r=syscall(${numbers.join(',')}); print "${name}: ",($r<0 ? 0+$! : "done"),"\\n";`);
    expect((await run(jail, ['perl', '-e', perl.join('')])).text.trim().split('\n')).toEqual([
      'socket vsock: 97',
      'socket inet: done',
      'socket alg: 97',
      'io_uring_setup: 38',
      'userfaultfd: 1',
      'keyctl: 1',
      'bpf: 1',
      'ptrace: 1',
      'unshare user: 1',
      'shmget 100 MB: 22',
      'shmget 56 B: done',
      'x32: 38',
    ]);
  });

  it.runIf(process.arch === 'x64')('a call from the 32-bit table kills its process', async () => {
    await using jail = await openJail({ clock: systemClock });
    // mov eax, 20 (getpid); int 0x80; ret
    const program = `import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex("b814000000cd80c3"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))(), flush=True)`;
    // Some virtual machines have no such calls: there the instruction alone kills a process, outside too.
    const hasTable = spawnSync('/usr/bin/python3', ['-c', program]).signal !== 'SIGSEGV';
    expect(await run(jail, ['/usr/bin/python3', '-c', program])).toMatchObject({ signal: hasTable ? 'SIGSYS' : 'SIGSEGV', text: '' });
  });

  it('everyday programs run', async () => {
    await using jail = await openJail({ clock: systemClock });
    const script = `set -e
git init -q -b main repo; cd repo; echo a > a; git add a; git -c user.name=a -c user.email=a@b commit -qm made; git log --format=%s; git gc -q
tar czf /tmp/a.tgz /usr/share/doc/bash 2>/dev/null; tar tzf /tmp/a.tgz > /tmp/list; test -s /tmp/list
seq 100 | sort -rn | head -1
node -e 'new (require("worker_threads").Worker)("console.log(require(\\"child_process\\").execSync(\\"echo thread\\").toString().trim())",{eval:true}); os.networkInterfaces()'
/usr/bin/python3 -c 'import multiprocessing, subprocess
with multiprocessing.Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])), subprocess.run(["true"]).returncode)'`;
    expect(await run(jail, ['bash', '-c', script])).toMatchObject({ code: 0, text: 'made\n100\nthread\n3 0\n' });
  });
});
