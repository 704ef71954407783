import { join, resolve } from 'node:path';

/** Paths of everything in one installation; `openHome` creates them (0700, owner checked). */
export interface HomePaths {
  readonly dir: string;
  readonly configFile: string;
  /** Sealed copy of the last configuration with which a server started, 0600. */
  readonly lastGoodFile: string;
  /** JSON Schema of that file, for editors. */
  readonly configSchemaFile: string;
  /** Secret of the token created at first start, 0600. */
  readonly tokenFile: string;
  /** Root key of the installation (pepper of token digests, key of the fences), 0600. */
  readonly keyFile: string;
  /** Sealed copy of the secret store, which is read before the database is open, 0600. */
  readonly secretsFile: string;
  readonly dataDir: string;
  readonly workspacesDir: string;
  readonly backupsDir: string;
  /** Stored media and their sidecars. */
  readonly mediaDir: string;
  /** Skills that all agents share; created with the first one. */
  readonly skillsDir: string;
  /** Owner-only control socket. */
  readonly socketFile: string;
  /** Socket through which jailed scripts of agents call tools. */
  readonly capabilitySocketFile: string;
}

export function homePaths(dir: string): HomePaths {
  return {
    dir,
    configFile: join(dir, 'config.yaml'),
    lastGoodFile: join(dir, 'config.last-good'),
    configSchemaFile: join(dir, 'config.schema.json'),
    tokenFile: join(dir, 'token'),
    keyFile: join(dir, 'install.key'),
    secretsFile: join(dir, 'secrets.sealed'),
    dataDir: join(dir, 'data'),
    workspacesDir: join(dir, 'workspaces'),
    backupsDir: join(dir, 'backups'),
    mediaDir: join(dir, 'media'),
    skillsDir: join(dir, 'skills'),
    socketFile: join(dir, 'gatehouse.sock'),
    capabilitySocketFile: join(dir, 'capability.sock'),
  };
}

/** Returns the paths with the files that a standby continues with below `sharedPath`, which is relative to the home folder or absolute. */
export function sharedPaths(paths: HomePaths, sharedPath: string): HomePaths & { readonly sharedDir: string } {
  const sharedDir = resolve(paths.dir, sharedPath);
  return {
    ...paths,
    sharedDir,
    workspacesDir: join(sharedDir, 'workspaces'),
    mediaDir: join(sharedDir, 'media'),
    skillsDir: join(sharedDir, 'skills'),
  };
}
