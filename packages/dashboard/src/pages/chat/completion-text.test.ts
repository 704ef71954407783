import { expect, test } from 'vitest';
import { asked } from './completion-text.ts';

test.each([
  ['/', 1, { kind: 'command', query: '', start: 0, end: 1 }],
  ['/rel', 4, { kind: 'command', query: 'rel', start: 0, end: 4 }],
  ['/rel', 2, { kind: 'command', query: 'r', start: 0, end: 2 }],
  ['read @documents/pl now', 18, { kind: 'name', query: 'documents/pl', start: 5, end: 18 }],
  ['@', 1, { kind: 'name', query: '', start: 0, end: 1 }],
  ['a / b', 3, undefined],
  ['/new title', 10, undefined],
  ['ada@example', 11, undefined],
  ['', 0, undefined],
] as const)('in %j at %i', (text, cursor, expected) => expect(asked(text, cursor)).toEqual(expected));
