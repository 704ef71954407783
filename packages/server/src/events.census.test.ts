import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { events } from '@gatehouse/contract';
import { expect, test } from 'vitest';

const files = globSync('**/*.ts', { cwd: import.meta.dirname }).map((name) => ({
  name,
  text: readFileSync(join(import.meta.dirname, name), 'utf8'),
}));
const sources = files.filter(({ name }) => !/\.test\.ts$|testing/.test(name));
const tests = files.filter(({ name }) => name.endsWith('.test.ts') && name !== 'events.census.test.ts');

// Payloads are checked where they happen: a test server fails when one does not fit its declaration.
test.each(Object.keys(events))('%s has a producer and a test that makes it happen', (kind) => {
  const emits = new RegExp(`emit\\(\\s*'${kind}'`);
  expect(sources.filter(({ text }) => emits.test(text)).map(({ name }) => name)).not.toEqual([]);
  expect(tests.filter(({ text }) => text.includes(`'${kind}'`)).map(({ name }) => name)).not.toEqual([]);
});

test('no event is emitted that is not declared', () => {
  const emitted = sources.flatMap(({ text }) => [...text.matchAll(/\.emit\(\s*'([a-z_]+:[a-z_]+)'/g)].map(([, kind]) => kind));
  expect(emitted.filter((kind) => kind !== undefined && !(kind in events))).toEqual([]);
});
