import { expect, test } from 'vitest';
import { joinEntries, toEntries } from './event-history.ts';

test('stored events come before those of the tab, and each is shown once', () => {
  const stored = toEntries({
    entries: [
      { id: 1, event: 'message:received', payload: {}, timestamp: 10 },
      { id: 2, event: 'message:sent', payload: {}, timestamp: 20 },
    ],
    count: 2,
  });
  const live = [
    { number: 1, id: 2, kind: 'message:sent', payload: {}, atMs: 20 },
    { number: 2, kind: 'gap', payload: {}, atMs: 25 },
    { number: 3, id: 3, kind: 'message:received', payload: {}, atMs: 30 },
  ];
  expect(joinEntries(stored, live).map(({ number }) => number)).toEqual([-1, 1, 2, 3]);
});
