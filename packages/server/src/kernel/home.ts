import { randomBytes } from 'node:crypto';
import { accessSync, chmodSync, constants, existsSync, mkdirSync, type Stats, statSync } from 'node:fs';
import { type HomePaths, homePaths, sharedPaths } from './home-paths.ts';
import { type InstallKey, openInstallKey } from './install-key.ts';
import type { Keyring } from './keyring.ts';
import { checkPrivate, codeOf, createOwnFile, modeOf, quoted, readOwnFile, UnsafePathError } from './private-file.ts';

/** The folder of one installation, open and checked. */
export interface Home {
  readonly paths: HomePaths;
  readonly installKey: InstallKey;
  /** True when there was no configuration, so that one was written. */
  readonly firstStart: boolean;
  readonly warnings: readonly string[];
  /** Reads config.yaml again. */
  readConfig(): ConfigFile;
  /** Returns the secret of the token created at first start, or undefined when there is none. */
  readToken(): string | undefined;
  /** Returns that secret; creates it, with 384 random bits, when there is no file. Undefined when it was revoked, which leaves an empty file. */
  ensureToken(): string | undefined;
}

export interface ConfigFile {
  readonly text: string;
  /** Called when the file itself holds secrets: revokes the access of other users if they have it, and returns what it did. */
  protect(): string | undefined;
}

export interface HomeOptions {
  /** Content of the configuration file of a first start. */
  readonly template: () => string;
  /** Used instead of the key in the home folder, which is then neither read nor created. */
  readonly installKey?: InstallKey | undefined;
  /** Read when the file of the key refers to it. */
  readonly keyring: Keyring;
}

const maxConfigFileBytes = 1_048_576;

/**
 * Opens the home folder and creates what is missing: the folder and its subfolders (0700), a configuration file from
 * `template`, the install key (0600 each) unless one is given. Fails with an UnsafePathError when the folder or a file with secrets
 * belongs to another user or others have access.
 */
export function openHome(dir: string, options: HomeOptions): Home {
  const paths = homePaths(dir);
  openFolder(dir);
  for (const part of [paths.dataDir, paths.workspacesDir, paths.backupsDir, paths.mediaDir]) openFolder(part);

  const firstStart = !existsSync(paths.configFile) && createOwnFile(paths.configFile, options.template());
  const { key, created } =
    options.installKey === undefined ? openInstallKey(paths.keyFile, options.keyring) : { key: options.installKey, created: false };
  const warnings =
    created && !firstStart && existsSync(`${paths.dataDir}/gatehouse.db`)
      ? [`${paths.keyFile} was missing and has been recreated: tokens made by tokens.create are void, create new ones`]
      : [];

  const readToken = (): string | undefined => {
    const file = readOwnFile(paths.tokenFile, { maxBytes: 1024 });
    if (file === undefined) return undefined;
    checkPrivate(paths.tokenFile, file.stats, '600');
    const secret = file.text.trim();
    if (secret === '') return undefined;
    if (secret.length < 32 || /\s/.test(secret))
      throw new UnsafePathError(paths.tokenFile, 'expected one token of at least 32 characters; delete the file to have a new one made');
    return secret;
  };

  return {
    paths,
    installKey: key,
    firstStart,
    warnings,
    readConfig: () => readConfig(paths.configFile),
    readToken,
    ensureToken() {
      const existing = readToken();
      if (existing !== undefined) return existing;
      const secret = `gh_${randomBytes(48).toString('base64url')}`;
      if (createOwnFile(paths.tokenFile, `${secret}\n`)) return secret;
      return readToken();
    },
  };
}

/**
 * Returns the paths with workspaces, media and skills below a folder that several installations share and creates those that are missing (0700). The folder itself must exist: a disk that is not mounted must not be replaced by an empty folder.
 */
export function openSharedFolders(paths: HomePaths, sharedPath: string): HomePaths {
  const shared = sharedPaths(paths, sharedPath);
  if (!existsSync(shared.sharedDir))
    throw new UnsafePathError(shared.sharedDir, 'does not exist, and storage.sharedPath names it; mount or create it');
  for (const part of [shared.workspacesDir, shared.mediaDir, shared.skillsDir]) openFolder(part);
  return shared;
}

function readConfig(path: string): ConfigFile {
  const file = readOwnFile(path, { maxBytes: maxConfigFileBytes, followLinks: true });
  if (file === undefined) throw new UnsafePathError(path, 'is a link to a file that does not exist');
  return {
    text: file.text,
    protect() {
      if (process.platform === 'win32' || (file.stats.mode & 0o077) === 0) return undefined;
      try {
        file.chmod(0o600);
      } catch (error) {
        throw new UnsafePathError(
          path,
          `holds secrets and others have access (mode ${modeOf(file.stats)}); close it with: chmod 600 ${quoted(path)}, or take the secrets from the environment as "\${NAME}"`,
          { cause: error },
        );
      }
      return `${path} holds secrets and had mode ${modeOf(file.stats)}; it is 0600 now`;
    },
  };
}

function openFolder(path: string): void {
  let stats: Stats;
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    stats = statSync(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EROFS') throw readOnlyError(path, error);
    if (code === 'EEXIST' || code === 'ENOTDIR') throw new UnsafePathError(path, 'expected a folder, found a file (here or above)', { cause: error });
    throw new UnsafePathError(path, `cannot be created or opened (${code}); choose another folder with --home or GATEHOUSE_HOME`, { cause: error });
  }
  checkPrivate(path, stats, '700');
  checkAccess(path, stats);
  // A umask can only remove permissions, and too many removed would fail later.
  if (process.platform !== 'win32' && (stats.mode & 0o700) !== 0o700) chmodSync(path, 0o700);
}

/** Refuses a folder of the installation that cannot be read and written. */
export function checkAccess(path: string, stats: Stats): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (codeOf(error) === 'EROFS') throw readOnlyError(path, error);
    throw new UnsafePathError(path, `Gatehouse may not read and write here (mode ${modeOf(stats)}); allow it with: chmod 700 ${quoted(path)}`, {
      cause: error,
    });
  }
}

function readOnlyError(path: string, cause: unknown): UnsafePathError {
  return new UnsafePathError(
    path,
    'lies on a file system that is mounted read-only; mount it for writing, or choose another folder with --home or GATEHOUSE_HOME',
    { cause },
  );
}
