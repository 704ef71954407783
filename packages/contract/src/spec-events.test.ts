import { expect, test } from 'vitest';
import { eventKinds } from './events.ts';
import specified from './testdata/spec-events.json' with { type: 'json' };

/** Kinds of the specification that nothing emits yet, by the issue that adds them. */
const later: Readonly<Record<string, readonly string[]>> = {
  13: ['terminal.drive_promoted', 'terminal.session_evicted'],
};

// The census of the server checks that each declared kind has a producer and a test.
test('every kind of the specification is declared, or named here with its issue', () => {
  const declared = new Set<string>(eventKinds);
  const missing: Record<string, string[]> = {};
  for (const part of [specified.stream, specified.trajectory])
    for (const [issue, kinds] of Object.entries<readonly string[]>(part))
      for (const kind of kinds) if (!declared.has(kind)) (missing[issue] ??= []).push(kind);
  expect(missing).toEqual(later);
});

test('the list is complete: 51 kinds of the stream and 16 of the trajectory, without duplicates', () => {
  const kinds = [specified.stream, specified.trajectory].map((part) => Object.values<readonly string[]>(part).flat());
  expect(kinds.map((list) => [list.length, new Set(list).size])).toEqual([
    [51, 51],
    [16, 16],
  ]);
});
