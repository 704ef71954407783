// The programs that some suites need and npm cannot bring. Runs before `npm test`: plain JavaScript, no packages. As root on
// Debian or Ubuntu it installs what is missing; elsewhere it says what is, and the suites that need it skip.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const systemPackages = [
  { package: 'nginx-light', command: 'nginx', neededBy: 'e2e/proxies.test.ts' },
  { package: 'caddy', command: 'caddy', neededBy: 'e2e/proxies.test.ts' },
  { package: 'git', command: 'git', neededBy: 'packages/server/src/features/environment/workspace/git/git.rpc.test.ts' },
  { package: 'chromium', command: 'chromium', neededBy: 'packages/server/src/features/environment/browser/browser.rpc.test.ts' },
  { package: 'chromium-headless-shell', command: 'chromium-headless-shell', neededBy: 'e2e/lib/browser.ts' },
  { package: 'postgresql', command: 'pg_ctlcluster', neededBy: 'packages/testkit/src/postgres.ts' },
  { package: 'curl', command: 'curl', neededBy: 'e2e/walkthrough-postgresql.test.ts' },
  { package: 'gnome-keyring', command: 'gnome-keyring-daemon', neededBy: 'packages/server/src/kernel/testing/secret-service.ts' },
  { package: 'ngircd', command: 'ngircd', neededBy: 'packages/server/src/channels/irc/irc.test.ts' },
  { package: 'inspircd', command: 'inspircd', neededBy: 'packages/server/src/channels/irc/irc.test.ts' },
  { package: 'dovecot-imapd', command: 'dovecot', neededBy: 'packages/server/src/channels/email/receive.test.ts' },
  { package: 'exim4-daemon-light', command: 'exim4', neededBy: 'packages/testkit/src/smtp-server.ts', replaces: 'sendmail' },
  { package: 'espeak-ng', command: 'espeak-ng', neededBy: 'packages/server/src/features/environment/multimodal/speech/local-programs.test.ts' },
  { package: 'ffmpeg', command: 'ffmpeg', neededBy: 'packages/server/src/features/environment/multimodal/speech/local-programs.test.ts' },
  { package: 'bubblewrap', command: 'bwrap', neededBy: 'packages/server/src/features/environment/shell/shell.test.ts' },
  { package: 'vim-tiny', command: 'vi', neededBy: 'proving/lib/terminal-script.ts' },
  { package: 'sqlite3', command: 'sqlite3', neededBy: 'proving/lib/terminal-script.ts' },
  { package: 'python3', command: 'python3', neededBy: 'proving/lib/terminal-script.ts' },
];

/** Folders of daemons, which are not in the path of an ordinary user. */
const moreFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];
const policyFile = '/usr/sbin/policy-rc.d';

/** Returns the path of a program, or undefined. */
export function findCommand(command) {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), ...moreFolders]) {
    if (folder === '') continue;
    const path = join(folder, command);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** Installs missing packages where permitted, reports it through `say`, and returns what is still missing. */
export function ensureSystemPackages(say) {
  const missing = missingPackages();
  if (missing.length === 0) return [];
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version') || findCommand('apt-get') === undefined) {
    for (const entry of missing) say(`${entry.command} is not installed (Debian package ${entry.package}): ${entry.neededBy} skips what needs it`);
    return missing;
  }
  const [kept, wanted] = [missing.filter((entry) => wouldRemove(entry)), missing.filter((entry) => !wouldRemove(entry))];
  for (const entry of kept)
    say(`${entry.package} is not installed, because it would replace the package with ${entry.replaces}: ${entry.neededBy} skips what needs it`);
  if (wanted.length === 0) return kept;
  const packages = wanted.map((entry) => entry.package);
  say(`installing what the suites need: apt-get install ${packages.join(' ')}`);
  withoutServices(() => {
    // The package lists are fetched only when the existing ones do not suffice.
    if (!aptGet(['install', ...packages])) {
      aptGet(['update']);
      aptGet(['install', ...packages]);
    }
  });
  const still = missingPackages();
  for (const entry of still.filter((one) => !kept.includes(one)))
    say(`${entry.package} could not be installed: ${entry.neededBy} skips what needs it`);
  return still;
}

/** Whether installing a package would remove another one: a machine has one package that provides `replaces`, such as one mail server. */
export function wouldRemove({ replaces }, find = findCommand) {
  return replaces !== undefined && find(replaces) !== undefined;
}

function missingPackages() {
  return systemPackages.filter((entry) => findCommand(entry.command) === undefined);
}

function aptGet(parameters) {
  const { status } = spawnSync('apt-get', ['-y', '-q', '-o', 'DPkg::Lock::Timeout=120', '--no-install-recommends', ...parameters], {
    // Its own lines belong to the story, not to the answer of a test.
    stdio: ['ignore', 2, 2],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return status === 0;
}

/** Keeps packages from starting their servers: a test must leave no web server behind on port 80. */
function withoutServices(run) {
  const own = !existsSync(policyFile);
  if (own) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    run();
  } finally {
    if (own) rmSync(policyFile, { force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  ensureSystemPackages((text) => process.stderr.write(`gatehouse: ${text}\n`));
