import { AppError } from './app-error.ts';
import type { JailSpec } from './jail.ts';

/** Parts of the host that are visible inside in addition to /usr. */
export interface HostFolders {
  /** Name and target of each link. */
  readonly links: readonly (readonly [string, string])[];
  readonly folders: readonly string[];
  /** The daemon's own program. */
  readonly node: string;
}

/** Files that programs need from /etc; none of them is a secret of the machine. */
const etc = [
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/fonts',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/pki/ca-trust',
  '/etc/pki/tls/certs',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
];
const etcOfNetwork = ['/etc/hosts', '/etc/nsswitch.conf', '/etc/resolv.conf'];

const userId = 1000;
const passwdFd = 8;
const groupFd = 9;
/** Pipes from which bubblewrap reads its options and its system call filter. */
export const pipes = { options: 3, filter: 4 } as const;

/**
 * Returns the options of bubblewrap. Writable space is limited: the mounts, and sized folders in memory. /proc is
 * read-only because a program inside a root daemon's jail has the user id that owns the kernel settings, and
 * `core_pattern` would start a program outside.
 */
export function bubblewrapArguments(spec: JailSpec, host: HostFolders, { nestedNamespaces }: { readonly nestedNamespaces: boolean }): string[] {
  const size = String(Math.min(spec.limits.fileBytes, Math.floor(spec.limits.memoryBytes / 2)));
  const inMemory = (path: string) => ['--perms', '0700', '--size', size, '--tmpfs', path];
  return [
    ['--unshare-all', '--unshare-user', '--uid', String(userId), '--gid', String(userId), '--hostname', 'jail'],
    nestedNamespaces ? [] : ['--disable-userns'],
    spec.network ? ['--share-net'] : [],
    ['--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv'],
    ['--seccomp', String(pipes.filter)],
    ...Object.entries(spec.env).map(([name, value]) => ['--setenv', name, value]),
    ['--ro-bind', '/usr', '/usr'],
    ...host.folders.map((path) => ['--ro-bind', path, path]),
    ...host.links.map(([path, target]) => ['--symlink', target, path]),
    ...[...etc, ...(spec.network ? etcOfNetwork : [])].map((path) => ['--ro-bind-try', path, path]),
    ['--ro-bind-data', String(passwdFd), '/etc/passwd', '--ro-bind-data', String(groupFd), '/etc/group'],
    ['--ro-bind', host.node, '/opt/gatehouse/bin/node'],
    ['--proc', '/proc', '--remount-ro', '/proc', '--dev', '/dev', ...inMemory('/dev/shm'), '--remount-ro', '/dev'],
    inMemory('/tmp'),
    inMemory('/home/agent'),
    ...spec.mounts.map(({ from, to, writable }) => [writable ? '--bind' : '--ro-bind', from, to]),
    ...(spec.masked ?? []).map((path) => ['--size', '4096', '--tmpfs', path, '--remount-ro', path]),
    ['--remount-ro', '/', '--chdir', spec.cwd],
  ].flat();
}

/** Encodes arguments as `--args` of bubblewrap reads them. */
export function toArgumentBytes(words: readonly string[]): string {
  if (words.some((word) => word.includes('\0'))) throw new AppError('invalid_params', 'A path or variable of a command holds a NUL character');
  return words.map((word) => `${word}\0`).join('');
}

/** Joins its control groups, if any, passes bubblewrap the two small files and becomes it; the arguments are passed on. */
export function jailScript(joining: string | undefined): string {
  const user = `agent:x:${userId}:${userId}::/home/agent:/bin/sh`;
  return `${joining ?? ''}
exec "$@" ${passwdFd}<<'PASSWD' ${groupFd}<<'GROUP'
${user}
nobody:x:65534:65534::/:/usr/sbin/nologin
PASSWD
agent:x:${userId}:
nogroup:x:65534:
GROUP
`;
}
