import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import type { TestProject } from 'vitest/node';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'node_modules/.cache/test-threads');

/**
 * Bundles the module of the storage threads once per test run, and creates an empty database. Loading a thread from about two hundred source
 * files takes four times as long as from one file; creating the tables takes a third of the start of a test server. In watch mode the sources
 * are used, because they change.
 */
export async function setup({ config }: TestProject): Promise<void> {
  if (config.watch) return;
  const onPostgres = process.env['GATEHOUSE_TEST_DB'] === 'postgres';
  const { file, digest } = await bundle(onPostgres ? 'postgres-worker' : 'transactions/testing/shared-worker');
  process.env['GATEHOUSE_TEST_STORAGE_WORKER'] = file;
  if (onPostgres) return;
  const data = join(folder, `data-${digest}`);
  if (!existsSync(data)) await createData(data);
  process.env['GATEHOUSE_TEST_DATA'] = data;
}

async function bundle(name: string): Promise<{ readonly file: string; readonly digest: string }> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [`packages/server/src/${name}.ts`],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    logLevel: 'warning',
    external: ['pg-native'],
    banner: { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" },
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  const digest = createHash('sha256').update(code).digest('hex').slice(0, 16);
  const file = join(folder, `${basename(name)}-${digest}.mjs`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.${process.pid}`, code);
  renameSync(`${file}.${process.pid}`, file);
  return { file, digest };
}

async function createData(data: string): Promise<void> {
  const { openDb, silentLog, systemClock } = await import('@gatehouse/server');
  const draft = `${data}.${process.pid}`;
  const db = await openDb({ dataDir: draft, clock: systemClock, log: silentLog });
  await db[Symbol.asyncDispose]();
  try {
    renameSync(draft, data);
  } catch {
    // Another run was faster.
    rmSync(draft, { recursive: true });
  }
}
