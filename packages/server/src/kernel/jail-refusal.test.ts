import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findCommand } from '../../../../tools/system-packages.mjs';
import { adviceFor, type RefusalSigns } from './jail-refusal.ts';
import { seccompFilter } from './jail-seccomp.ts';

const plain: RefusalSigns = { isFiltered: false, isRoot: false, profile: undefined, container: undefined, settings: {} };
const noNamespace = 'bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.';

describe('why there is no jail', () => {
  it.each<[string, string, Partial<RefusalSigns>, RegExp]>([
    ['no namespaces at all', noNamespace, { settings: { 'user.max_user_namespaces': 0 } }, /sysctl -w user\.max_user_namespaces=/],
    [
      'namespaces for root alone',
      noNamespace,
      { settings: { 'kernel.unprivileged_userns_clone': 0 } },
      /sysctl -w kernel\.unprivileged_userns_clone=1/,
    ],
    [
      'AppArmor of Ubuntu',
      'bwrap: setting up uid map: Permission denied',
      { profile: 'unconfined', settings: { 'kernel.apparmor_restrict_unprivileged_userns': 1 } },
      /profile for \/usr\/bin\/bwrap.*sysctl -w kernel\.apparmor_restrict_unprivileged_userns=0/,
    ],
    [
      'Docker',
      noNamespace,
      { isFiltered: true, container: 'docker' },
      /--security-opt seccomp=unconfined --security-opt apparmor=unconfined.*--cap-add SYS_ADMIN/,
    ],
    ['Kubernetes', noNamespace, { isFiltered: true, container: 'kubernetes' }, /seccompProfile\.type Unconfined.*procMount Unmasked/],
    ['a service of systemd', noNamespace, { isFiltered: true }, /RestrictNamespaces=/],
    [
      'Docker without its filter',
      'bwrap: Failed to make / slave: Permission denied',
      { isFiltered: true, profile: 'docker-default (enforce)', container: 'docker' },
      /AppArmor profile docker-default refuses mounts: .*--security-opt apparmor=unconfined/,
    ],
    [
      'Docker with paths of /proc hidden',
      "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
      { container: 'docker' },
      /--security-opt systempaths=unconfined/,
    ],
    ['a kernel without filters', 'bwrap: prctl(PR_SET_SECCOMP): Invalid argument', {}, /CONFIG_SECCOMP_FILTER/],
    ['something else', 'bwrap: what', {}, /user namespaces/],
  ])('names what helps: %s', (_case, said, signs, advice) => {
    expect(adviceFor(said, { ...plain, ...signs })).toMatch(advice);
  });

  it('names all settings that must change, and none that does not exist', () => {
    const both = adviceFor(noNamespace, { ...plain, settings: { 'user.max_user_namespaces': 0, 'kernel.unprivileged_userns_clone': 0 } });
    expect(both).toMatch(/max_user_namespaces=15000.* Also: .*unprivileged_userns_clone=1/);
    const root = { ...plain, isRoot: true, settings: { 'kernel.unprivileged_userns_clone': 0, 'kernel.apparmor_restrict_unprivileged_userns': 1 } };
    expect(adviceFor(noNamespace, root)).not.toMatch(/sysctl -w kernel/);
  });

  const bubblewrap = findCommand('bwrap');
  const filter = seccompFilter(process.arch);
  it.skipIf(bubblewrap === undefined || filter === undefined)(
    'is detected behind a filter like Docker’s, and reported by the doctor and by the tool',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-refusal-'));
      // It refuses what Docker's default profile refuses bubblewrap: namespaces and mounts.
      writeFileSync(join(folder, 'filter'), filter ?? '');
      const fd = openSync(join(folder, 'filter'), 'r');
      const module = (name: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, name)).href);
      const program = `
      const { openJail, refuseWithout } = await import(${module('jail.ts')});
      const { systemClock } = await import(${module('clock.ts')});
      const { examine } = await import(${module('../process/doctor.ts')});
      setInterval(() => {}, 1000);
      const jail = await openJail({ clock: systemClock });
      try { refuseWithout(jail); } catch (error) { console.log(JSON.stringify({ tool: error.message })); }
      console.log(JSON.stringify((await examine(${JSON.stringify(join(folder, 'home'))}, {})).find(({ name }) => name === 'jail')));
      process.exit(0);`;
      try {
        const behind = ['--dev-bind', '/', '/', '--seccomp', '3', '--'];
        const { stdout } = spawnSync(bubblewrap ?? '', [...behind, process.execPath, '--input-type=module', '-e', program], {
          stdio: ['ignore', 'pipe', 'inherit', fd],
          encoding: 'utf8',
        });
        const [tool, doctor] = stdout.trim().split('\n');
        const advice = 'A seccomp filter refuses clone and unshare with new user namespaces';
        expect(tool).toContain(`Commands run in a jail or not at all, and there is none here: bubblewrap cannot make a jail here`);
        for (const said of [tool, doctor]) expect(said).toMatch(new RegExp(`${advice}.*seccomp=unconfined`));
        expect(doctor).toContain('"status":"warn"');
      } finally {
        closeSync(fd);
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
