import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
let clone: string;

beforeAll(() => {
  clone = mkdtempSync(join(tmpdir(), 'gatehouse-clone-'));
  for (const name of [
    '.npmrc',
    'package.json',
    'package-lock.json',
    'tsconfig.base.json',
    'tools/ensure.mjs',
    'tools/build.mjs',
    'tools/build-dashboard.mjs',
    'docs/reference/config.schema.json',
  ])
    cpSync(join(root, name), join(clone, name));
  cpSync(join(root, 'docs/guide'), join(clone, 'docs/guide'), { recursive: true });
  for (const name of ['contract', 'client', 'server', 'cli', 'dashboard'])
    cpSync(join(root, 'packages', name), join(clone, 'packages', name), { recursive: true, filter: (path) => !path.endsWith('node_modules') });
  // Marks the existing install as the one of the lock file: a separate install would need the registry.
  mkdirSync(join(clone, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules')))
    if (!name.startsWith('.installed')) symlinkSync(join(root, 'node_modules', name), join(clone, 'node_modules', name));
  const lock = readFileSync(join(clone, 'package-lock.json'));
  writeFileSync(join(clone, 'node_modules/.installed-lock'), createHash('sha256').update(lock).digest('hex'));
});
afterAll(() => rmSync(clone, { recursive: true, force: true }));

function ensure(nodeArgs: readonly string[] = []): { readonly status: number | null; readonly said: string } {
  const { status, stderr } = spawnSync(process.execPath, [...nodeArgs, join(clone, 'tools/ensure.mjs')], { encoding: 'utf8' });
  return { status, said: stderr };
}

test('builds what is missing, says so, and then finds nothing to do', () => {
  expect(ensure()).toEqual({
    status: 0,
    said: expect.stringMatching(/^gatehouse: building the bundle \(dist\/\)\ngatehouse: bundle built in [\d.]+ s\n$/),
  });
  expect(readdirSync(join(clone, 'dist'))).toEqual(expect.arrayContaining(['main.js', 'cli.js']));
  const parts = readdirSync(join(clone, 'dist/dashboard/assets'));
  const page = readFileSync(join(clone, 'dist/dashboard/index.html'), 'utf8');
  for (const [, name = ''] of page.matchAll(/\/assets\/([\w.-]+)/g)) expect(parts).toContain(name);
  expect(parts.filter((name) => name.endsWith('.js.br')).length).toBeGreaterThan(0);
  expect(ensure()).toEqual({ status: 0, said: '' });
  expect(existsSync(join(clone, '.build', 'ensure-lock'))).toBe(false);
});

test('`npm start` shows what the daemon prints and nothing of npm', () => {
  const { status, stdout, stderr } = spawnSync('npm', ['start', '--', '--version'], { cwd: clone, encoding: 'utf8' });
  expect([status, stdout, stderr]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/), '']);
});

test('compares the text of the sources, not their time', () => {
  const source = join(clone, 'packages/server/src/version.ts');
  utimesSync(source, new Date(), new Date());
  expect(ensure().said).toBe('');
  const before = statSync(join(clone, 'dist/main.js')).mtimeMs;
  appendFileSync(source, "\nexport const more = 'text';\n");
  const page = statSync(join(clone, 'dist/dashboard/index.html')).mtimeMs;
  expect(ensure().said).toMatch(/bundle built/);
  expect(statSync(join(clone, 'dist/main.js')).mtimeMs).toBeGreaterThan(before);
  // The dashboard has other sources.
  expect(statSync(join(clone, 'dist/dashboard/index.html')).mtimeMs).toBe(page);
  appendFileSync(join(clone, 'packages/server/src/process/main.test.ts'), '\n');
  expect(ensure().said).toBe('');
});

test('fails with the reason when the sources cannot be built, and keeps the last bundle', () => {
  const source = join(clone, 'packages/server/src/version.ts');
  const good = readFileSync(source, 'utf8');
  writeFileSync(source, 'export const version = ;\n');
  expect(ensure()).toEqual({ status: 70, said: expect.stringMatching(/version\.ts:1:\d+: ERROR: Unexpected ";"/) });
  expect(existsSync(join(clone, 'dist/main.js'))).toBe(true);
  writeFileSync(source, good);
  expect(ensure().status).toBe(0);
});

test('the rare parts are loaded on demand and nothing native is bundled', () => {
  const parts = readdirSync(join(clone, 'dist')).filter((name) => name.endsWith('.js'));
  expect(parts.some((name) => name.startsWith('main-undici-'))).toBe(true);
  // The façade of node:http costs a quarter of the start.
  for (const name of parts) expect(readFileSync(join(clone, 'dist', name), 'utf8')).not.toMatch(/^import[^\n]*from *["'](?:node:)?http["']/m);
  // V8 keeps a file with other characters at two bytes a character.
  for (const name of parts) expect(readFileSync(join(clone, 'dist', name), 'utf8'), name).toMatch(/^[\u0000-\u007f]*$/);
  // Nothing but what runs the program with its kept functions.
  expect(readFileSync(join(clone, 'dist/main.js'), 'utf8').length).toBeLessThan(8_000);
});
