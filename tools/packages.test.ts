import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { lookAtPackages, onDemand, readPackageSources } from './packages.ts';

const root = join(import.meta.dirname, '..');
const sources = readPackageSources(root);
const Lock = z.looseObject({ packages: z.record(z.string(), z.looseObject({ dependencies: z.record(z.string(), z.string()).optional() })) });

/** The lock file with one more package, which the server needs. */
function withPackage(name: string, entry: object, neededBy = 'packages/server') {
  const lock = Lock.parse(structuredClone(sources.lock));
  const needing = lock.packages[neededBy];
  if (needing === undefined) throw new Error(`the lock file has no ${neededBy}`);
  needing.dependencies = { ...needing.dependencies, [name]: '1.0.0' };
  lock.packages[`node_modules/${name}`] = { version: '1.0.0', ...entry };
  return { ...sources, lock };
}

test('the installed packages respect the limits, run no script and include nothing known to be bad', () => {
  const report = lookAtPackages(sources);
  expect(report.wrong).toEqual([]);
  expect(report.always).toBeGreaterThan(20);
  expect(report.production).toBeGreaterThan(report.always);
});

/** Returns the packages that the static imports of a program reach. */
function packagesLoadedBy(entry: string): ReadonlySet<string> {
  const files = [join(root, entry)];
  const packages = new Set<string>();
  for (const file of files) {
    for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'/gm)) {
      const target = specifier.startsWith('.') ? join(dirname(file), specifier) : undefined;
      if (target === undefined) packages.add(specifier);
      else if (target.endsWith('.ts') && !files.includes(target)) files.push(target);
    }
  }
  return packages;
}

test.each(Object.entries(onDemand))('%s is loaded on demand alone', (_group, members) => {
  const server = ['process/daemon', 'server', 'storage-worker', 'kernel/db/sqlite/group-commit'].map((name) => `packages/server/src/${name}.ts`);
  const loaded = new Set([...server, 'packages/cli/src/main.ts'].flatMap((entry) => [...packagesLoadedBy(entry)]));
  expect([...loaded]).toEqual(expect.arrayContaining(['zod', 'kysely', 'commander']));
  for (const name of members) expect([...loaded].filter((specifier) => specifier === name || specifier.startsWith(`${name}/`))).toEqual([]);
});

describe('a bad lock file is caught', () => {
  test('a new package with an install script', () => {
    expect(lookAtPackages(withPackage('planted', { hasInstallScript: true })).wrong).toEqual([
      'planted of production runs a script when it is installed',
    ]);
  });

  test('a new tool with an install script that is not refused', () => {
    expect(lookAtPackages(withPackage('planted', { hasInstallScript: true, dev: true }, 'packages/testkit')).wrong).toEqual([
      'planted has an install script that package.json does not refuse',
    ]);
    const manifest = { allowScripts: { esbuild: true, bufferutil: false, 'utf-8-validate': false } };
    expect(lookAtPackages({ ...sources, manifest }).wrong).toEqual([
      'esbuild has an install script that package.json does not refuse',
      'package.json lets esbuild run its install script',
    ]);
  });

  test('a version that is known to be bad, wherever it is installed', () => {
    const nested = withPackage('ws/node_modules/debug', { version: '4.4.2' });
    expect(lookAtPackages(nested).wrong).toEqual(['debug@4.4.2 is known to be bad: https://github.com/debug-js/debug/issues/1005']);
  });

  test('too many packages', () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`planted-${n}`, '1.0.0']));
    const { lock } = withPackage('planted', { dependencies: many });
    for (const name of Object.keys(many)) lock.packages[`node_modules/${name}`] = { version: '1.0.0' };
    expect(lookAtPackages({ ...sources, lock }).wrong).toEqual([
      expect.stringMatching(/^always loaded: 2\d\d packages, 60 are the limit$/),
      expect.stringMatching(/^production: 3\d\d packages, 200 are the limit$/),
    ]);
  });
});
