import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onPostgres } from '@gatehouse/testkit/sql';
import * as z from 'zod';

/** Creates an empty home folder of mode 0700; removed with `removeHome`. */
export async function makeHome(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-proof-'));
  await chmod(dir, 0o700);
  return dir;
}

interface HomeConfig {
  readonly storage?: { readonly driver?: string };
}

/**
 * JSON is YAML, so the configuration is written as an object. With `GATEHOUSE_TEST_DB=postgres` the home gets a database of the run's
 * server, unless its configuration names an engine.
 */
export async function writeConfig(home: string, config: object): Promise<void> {
  const { storage }: HomeConfig = config;
  const url = onPostgres && storage?.driver === undefined ? await databaseUrlOf(home) : undefined;
  const written = url === undefined ? config : { ...config, storage: { driver: 'postgres', url, poolSize: 4, ...storage } };
  await writeFile(join(home, 'config.yaml'), `${JSON.stringify(written, null, 2)}\n`, { mode: 0o600 });
}

async function databaseUrlOf(home: string): Promise<string> {
  const { openDatabaseOf } = await import('@gatehouse/server/test-database');
  return (await openDatabaseOf(home)).url;
}

export async function removeHome(home: string): Promise<void> {
  await rm(home, { recursive: true, force: true, maxRetries: 3 });
}

/** Returns everything below a folder, as paths; for scans of what a daemon has written. */
export async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

const Boots = z.array(z.looseObject({ startedAtMs: z.number() }));

/**
 * Three crashes within five minutes rightly stop the agents of a daemon. For harnesses in which every run crashes, this ages the record
 * of the boots; that the last one ended uncleanly stays in it.
 */
export async function ageBoots(home: string): Promise<void> {
  const file = join(home, 'data', 'boots.json');
  const boots = Boots.parse(JSON.parse(await readFile(file, 'utf8')));
  await writeFile(file, JSON.stringify(boots.map((boot) => ({ ...boot, startedAtMs: boot.startedAtMs - 600_000 }))));
}
