import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { TestProject } from 'vitest/node';

const root = join(import.meta.dirname, '..');

/**
 * Bundles the module of the storage threads once per test run. Test servers start two of these threads each, and loading one from about two
 * hundred source files takes four times as long as from one file. In watch mode the sources are used, because they change.
 */
export async function setup({ config }: TestProject): Promise<void> {
  if (config.watch) return;
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['packages/server/src/storage-worker.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    logLevel: 'warning',
    banner: { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" },
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  const folder = join(root, 'node_modules/.cache/test-threads');
  const file = join(folder, `storage-worker-${createHash('sha256').update(code).digest('hex').slice(0, 16)}.mjs`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.${process.pid}`, code);
  renameSync(`${file}.${process.pid}`, file);
  process.env['GATEHOUSE_TEST_STORAGE_WORKER'] = file;
}
