import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tryWrite } from '../kernel/db/sqlite/try-write.ts';
import { migrations, operations } from './registry.ts';

const root = join(import.meta.dirname, '..');
const sources = globSync('**/*.ts', { cwd: root })
  .filter((name) => !/\.test\.ts$|testing/.test(name))
  .map((name) => readFileSync(join(root, name), 'utf8'));

test('every operation that a store declares is known to the storage threads', () => {
  const declared = sources.flatMap((text) => [...text.matchAll(/= operation\(\s*'([\w.]+)'/g)].map(([, name]) => name));
  expect(declared.length).toBeGreaterThan(10);
  // The storage thread has its own.
  expect([...operations, tryWrite].map(({ name }) => name).toSorted()).toEqual(declared.toSorted());
});

test('every migration is listed once, under a unique number', () => {
  const declared = sources.flatMap((text) => [...text.matchAll(/\bid: '(\d{3}-[\w-]+)'/g)].map(([, id]) => id));
  expect(migrations.map(({ id }) => id).toSorted()).toEqual(declared.toSorted());
  expect(new Set(migrations.map(({ id }) => id.slice(0, 3))).size).toBe(migrations.length);
});
