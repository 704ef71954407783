/** A classic BPF program for the system calls of a process, as `bwrap --seccomp` reads it. Unknown architectures have none. */
export function seccompFilter(architecture: string): Buffer | undefined {
  const known = machines[architecture];
  return known === undefined ? undefined : assemble(programFor(known));
}

interface Machine {
  /** AUDIT_ARCH_* of the calls that 64-bit programs of this machine make. */
  readonly audit: number;
  readonly column: 0 | 1;
}

const machines: Readonly<Record<string, Machine>> = {
  x64: { audit: 0xc000_003e, column: 0 },
  arm64: { audit: 0xc000_00b7, column: 1 },
};

const errno = { EPERM: 1, EINVAL: 22, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;

/** The highest number that was reviewed (Linux 6.17, file_setattr). Later calls, and the x32 calls (from 0x40000000), are "not implemented". */
const lastKnown = 469;

/**
 * Numbers on x86_64 and on aarch64; 0 means none. Programs that may use these fall back to others when
 * the kernel reports them as missing. A filter cannot read the flags of clone3, which are in memory: libraries fall back to clone.
 */
const notImplemented: Readonly<Record<string, readonly [number, number]>> = {
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  clone3: [435, 435],
  memfd_secret: [447, 447],
  msgget: [68, 186],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  statmount: [457, 457],
  listmount: [458, 458],
  open_tree_attr: [467, 467],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  nfsservctl: [180, 42],
  uselib: [134, 0],
  _sysctl: [156, 0],
};

const notPermitted: Readonly<Record<string, readonly [number, number]>> = {
  userfaultfd: [323, 282],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  process_mrelease: [448, 448],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  setns: [308, 268],
  open_by_handle_at: [304, 265],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  vhangup: [153, 58],
  modify_ldt: [154, 0],
  iopl: [172, 0],
  ioperm: [173, 0],
};

const socket = [41, 198] as const;
const socketpair = [53, 199] as const;
const clone = [56, 220] as const;
const unshare = [272, 97] as const;
const shmget = [29, 194] as const;

/** UNIX, INET, INET6, and of NETLINK the protocol that lists addresses. A network namespace covers neither AF_VSOCK nor future families. */
const families = [1, 2, 10];
const netlink = 16;
/** NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const newNamespaces = 0x7e02_0000;
/** NEWTIME: among the flags of clone it is a part of a signal's number. */
const newTime = 0x80;
/** PostgreSQL requests a few bytes to detect another instance. 4096 segments are allowed, so that all together have 16 MiB. */
const sharedBytes = 4096;

interface Instruction {
  readonly code: number;
  readonly k: number;
  readonly yes?: number;
  readonly no?: number;
}

/** Offsets in `struct seccomp_data`. */
const at = { number: 0, architecture: 4, argument: (index: number) => 16 + 8 * index };

const load = (k: number): Instruction => ({ code: 0x20, k });
const isEqual = (k: number, yes: number, no: number): Instruction => ({ code: 0x15, k, yes, no });
const isAbove = (k: number, yes: number, no: number): Instruction => ({ code: 0x25, k, yes, no });
const hasAny = (k: number, yes: number, no: number): Instruction => ({ code: 0x45, k, yes, no });
const answer = (k: number): Instruction => ({ code: 0x06, k });
const allow = answer(0x7fff_0000);
const endProcess = answer(0x8000_0000);
const fail = (name: keyof typeof errno) => answer(0x0005_0000 | errno[name]);

/** Each rule starts with the number loaded, and keeps it loaded when it does not match. */
function programFor({ audit, column }: Machine): Instruction[] {
  const of = (numbers: readonly [number, number]) => numbers[column];
  const refuse = (table: typeof notPermitted, how: Instruction) =>
    Object.values(table).flatMap((numbers) => (of(numbers) === 0 ? [] : [isEqual(of(numbers), 0, 1), how]));
  const only = (numbers: readonly [number, number], then: readonly Instruction[]) => [isEqual(of(numbers), 0, then.length), ...then];
  const oneOfFamilies = [
    load(at.argument(0)),
    ...families.flatMap((family) => [isEqual(family, 0, 1), allow]),
    isEqual(netlink, 1, 0),
    fail('EAFNOSUPPORT'),
    load(at.argument(2)),
    isEqual(0, 1, 0),
    fail('EPROTONOSUPPORT'),
    allow,
  ];
  const noNamespaces = (mask: number) => [load(at.argument(0)), hasAny(mask, 0, 1), fail('EPERM'), allow];
  return [
    load(at.architecture),
    // 32-bit programs, whose calls have other numbers.
    isEqual(audit, 1, 0),
    endProcess,
    load(at.number),
    isAbove(lastKnown, 0, 1),
    fail('ENOSYS'),
    ...refuse(notImplemented, fail('ENOSYS')),
    ...refuse(notPermitted, fail('EPERM')),
    ...only(socket, oneOfFamilies),
    ...only(socketpair, oneOfFamilies),
    ...only(clone, noNamespaces(newNamespaces)),
    ...only(unshare, noNamespaces(newNamespaces | newTime)),
    ...only(shmget, [load(at.argument(1)), isAbove(sharedBytes, 2, 0), load(at.argument(1) + 4), isEqual(0, 1, 0), fail('EINVAL'), allow]),
    allow,
  ];
}

/** `struct sock_filter`; both machines are little-endian. */
function assemble(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, k, yes = 0, no = 0 }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4);
  }
  return bytes;
}
