import { access, readFile } from 'node:fs/promises';

/** What the system reveals about who may create namespaces. */
export interface RefusalSigns {
  /** SECCOMP_MODE_FILTER: this process runs behind a system call filter, as container engines install. */
  readonly isFiltered: boolean;
  readonly isRoot: boolean;
  /** AppArmor profile; undefined without AppArmor. */
  readonly profile: string | undefined;
  readonly container: 'docker' | 'podman' | 'kubernetes' | undefined;
  /** Settings of the kernel by name; those that this kernel does not have are missing. */
  readonly settings: Readonly<Partial<Record<(typeof settingNames)[number], number>>>;
}

const settingNames = ['user.max_user_namespaces', 'kernel.unprivileged_userns_clone', 'kernel.apparmor_restrict_unprivileged_userns'] as const;

/** Says which setting keeps bubblewrap from creating a jail, and what allows it; `said` is bubblewrap's output. Never fails. */
export async function explainRefusal(said: string): Promise<string> {
  return adviceFor(said, await readSigns());
}

export function adviceFor(said: string, signs: RefusalSigns): string {
  const causes = causesOf(said, signs);
  if (causes.length > 0) return causes.join(' Also: ');
  if (/seccomp/i.test(said)) return 'This kernel has no filters of system calls: use one with CONFIG_SECCOMP_FILTER.';
  return 'Allow unprivileged user namespaces (sysctl user.max_user_namespaces above 0), or run outside of a container.';
}

function causesOf(said: string, { isFiltered, isRoot, profile, container, settings }: RefusalSigns): string[] {
  const causes: string[] = [];
  if (settings['user.max_user_namespaces'] === 0)
    causes.push('The kernel allows no user namespaces (user.max_user_namespaces is 0): run "sysctl -w user.max_user_namespaces=15000" on the host.');
  if (settings['kernel.unprivileged_userns_clone'] === 0 && !isRoot)
    causes.push(
      'The kernel keeps user namespaces for root (kernel.unprivileged_userns_clone is 0): run "sysctl -w kernel.unprivileged_userns_clone=1" on the host.',
    );
  // Elsewhere namespaces can be made, and something later is refused.
  const refusesNamespaces = /namespace|clone|unshare/i.test(said);
  if (isFiltered && refusesNamespaces && causes.length === 0) causes.push(filterAdvice(container));
  if (settings['kernel.apparmor_restrict_unprivileged_userns'] === 1 && !isRoot && !isContained(profile) && causes.length === 0)
    causes.push(
      'AppArmor removes all privileges in user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1): install a profile for /usr/bin/bwrap with "userns," (Ubuntu: package "apparmor-profiles", profile "bwrap-userns-restrict"), or run "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".',
    );
  if (causes.length > 0) return causes;
  if (/mount proc/i.test(said)) causes.push(procAdvice(container));
  else if (isContained(profile) && /mount|slave|pivot_root|namespace|uid map|permi/i.test(said)) causes.push(profileAdvice(profile ?? '', container));
  return causes;
}

const isContained = (profile: string | undefined) => profile !== undefined && !profile.startsWith('unconfined');

/** These options are also needed as soon as namespaces can be created. */
const dockerOptions = '--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined';
const kubernetesOptions =
  'securityContext: seccompProfile.type Unconfined, appArmorProfile.type Unconfined and procMount Unmasked (which needs hostUsers: false)';

function filterAdvice(container: RefusalSigns['container']): string {
  const cause = 'A seccomp filter refuses clone and unshare with new user namespaces';
  if (container === 'kubernetes') return `${cause}: set in the pod's ${kubernetesOptions}.`;
  if (container === undefined)
    return `${cause}: start the daemon without it (systemd: RestrictNamespaces= and SystemCallFilter=; container engines: --security-opt seccomp=unconfined).`;
  return `${cause}, as the default profile of ${container} does: start the container with "${dockerOptions}" (compose: security_opt), or with "--cap-add SYS_ADMIN" instead of seccomp=unconfined.`;
}

function profileAdvice(profile: string, container: RefusalSigns['container']): string {
  const cause = `The AppArmor profile ${profile.split(' ')[0]} refuses mounts`;
  if (container === 'kubernetes') return `${cause}: set in the pod's ${kubernetesOptions}.`;
  return `${cause}: start the container with "--security-opt apparmor=unconfined --security-opt systempaths=unconfined".`;
}

function procAdvice(container: RefusalSigns['container']): string {
  const cause = 'A new /proc cannot be mounted while parts of the present one are hidden';
  if (container === 'kubernetes') return `${cause}: set in the pod's ${kubernetesOptions}.`;
  return `${cause}: start the container with "--security-opt systempaths=unconfined" (podman: --security-opt unmask=ALL).`;
}

async function readSigns(): Promise<RefusalSigns> {
  const read = (path: string) => readFile(path, 'utf8').catch(() => undefined);
  const isThere = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );
  const status = (await read('/proc/self/status')) ?? '';
  const settings = await Promise.all(
    settingNames.map(async (name) => [name, Number((await read(`/proc/sys/${name.replace('.', '/')}`))?.trim() || Number.NaN)] as const),
  );
  const [isKubernetes, isDocker, isPodman] = await Promise.all(['/var/run/secrets/kubernetes.io', '/.dockerenv', '/run/.containerenv'].map(isThere));
  return {
    isFiltered: /^Seccomp:\s+2$/m.test(status),
    isRoot: process.getuid?.() === 0,
    profile: (await read('/proc/self/attr/apparmor/current'))?.trim() || undefined,
    container: isKubernetes === true ? 'kubernetes' : isDocker === true ? 'docker' : isPodman === true ? 'podman' : undefined,
    settings: Object.fromEntries(settings.filter(([, value]) => !Number.isNaN(value))),
  };
}
