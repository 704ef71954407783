import { expect, test } from 'vitest';
import { eventKinds } from './events.ts';
import specified from './testdata/spec-events.json' with { type: 'json' };

// The census of the server checks that each declared kind has a producer and a test.
test('every kind of the specification is declared', () => {
  const declared = new Set<string>(eventKinds);
  const missing: Record<string, string[]> = {};
  for (const part of [specified.stream, specified.trajectory])
    for (const [issue, kinds] of Object.entries<readonly string[]>(part))
      for (const kind of kinds) if (!declared.has(kind)) (missing[issue] ??= []).push(kind);
  expect(missing).toEqual({});
});

test('the list is complete: 51 kinds of the stream and 16 of the trajectory, without duplicates', () => {
  const kinds = [specified.stream, specified.trajectory].map((part) => Object.values<readonly string[]>(part).flat());
  expect(kinds.map((list) => [list.length, new Set(list).size])).toEqual([
    [51, 51],
    [16, 16],
  ]);
});
