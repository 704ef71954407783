import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { relatedTests, withinTime } from './related-tests.ts';
import { moduleGraph } from './module-graph.ts';

const graph = new Map([
  ['packages/server/src/features/a/one/one.ts', []],
  ['packages/server/src/features/a/one/one.test.ts', ['packages/server/src/features/a/one/one.ts']],
  ['packages/server/src/features/a/one/one.rpc.test.ts', ['packages/testkit/src/index.ts']],
  ['packages/server/src/features/b/two/two.rpc.test.ts', ['packages/testkit/src/index.ts']],
  ['packages/server/src/features/b/two/two.test.ts', []],
  ['packages/testkit/src/index.ts', ['packages/server/src/server.ts']],
  ['packages/server/src/server.ts', ['packages/server/src/features/a/one/one.ts']],
  ['proving/r1.test.ts', []],
  ['e2e/dashboard.test.ts', []],
]);
const proofs = new Map([['packages/server/src/features/a/one/one.ts', ['proving/r1.test.ts']]]);

test('lists the tests next to a change, those that are named, then all that load it', () => {
  expect(relatedTests({ files: ['packages/server/src/features/a/one/one.ts'], graph, proofs })).toEqual([
    'packages/server/src/features/a/one/one.rpc.test.ts',
    'packages/server/src/features/a/one/one.test.ts',
    'proving/r1.test.ts',
    'packages/server/src/features/b/two/two.rpc.test.ts',
  ]);
  expect(relatedTests({ files: ['packages/dashboard/src/shell.tsx'], graph, proofs })).toEqual(['e2e/dashboard.test.ts']);
  expect(relatedTests({ files: ['packages/server/src/features/b/two/two.test.ts'], graph, proofs })).toEqual([
    'packages/server/src/features/b/two/two.test.ts',
  ]);
});

test('takes what fits into the time, the nearest first', () => {
  expect(withinTime(['a', 'b', 'c', 'd'], 100, (name) => (name === 'b' ? 90 : 40))).toEqual(['a', 'c']);
  expect(withinTime(['a'], 100, () => 500)).toEqual(['a']);
});

test('the rules name tests that exist', () => {
  const root = join(import.meta.dirname, '..');
  const known = new Set(moduleGraph(root).keys());
  const names = [...readFileSync(join(import.meta.dirname, 'related-tests.ts'), 'utf8').matchAll(/'((?:e2e|tools|proving)\/[\w.-]+)'/g)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name = '') => !known.has(name))).toEqual([]);
});
