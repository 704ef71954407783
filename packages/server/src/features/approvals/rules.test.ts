import { expect, test } from 'vitest';
import { canonicalJson, digestOf, hideIn } from './exact-call.ts';
import { matchesGlob } from './rules.ts';

test.each([
  ['', '', true],
  ['', '*', true],
  ['abc', 'abc', true],
  ['abc', 'a?c', true],
  ['abc', 'a*', true],
  ['abc', '*c', true],
  ['a/b/c', 'a*c', true],
  ['abcbc', 'a*bc', true],
  ['abc', 'ab', false],
  ['ab', 'abc', false],
  ['abc', 'a?', false],
  ['a.c', 'a[.]c', false],
  ['axc', 'a.c', false],
])('%j is like %j: %s', (text, glob, expected) => expect(matchesGlob(text, glob)).toBe(expected));

test('a pattern of many stars takes no time', () => {
  const begun = performance.now();
  expect(matchesGlob('a'.repeat(60_000), `${'*a'.repeat(30)}*b`)).toBe(false);
  expect(performance.now() - begun).toBeLessThan(1000);
});

const call = { agentId: 'a', conversationRef: 'c', tool: 't', fingerprint: '', args: { b: 1, a: [null, 'x', { y: true }] }, workspaceDir: '/w' };

test('the digest is the same for equal calls and another one for any difference', () => {
  const digests = [
    call,
    { ...call, agentId: 'b' },
    { ...call, conversationRef: 'd' },
    { ...call, tool: 'u' },
    { ...call, fingerprint: '1' },
    { ...call, workspaceDir: '/v' },
    { ...call, args: { b: 1, a: [null, 'x', { y: false }] } },
    { ...call, args: { b: '1', a: [null, 'x', { y: true }] } },
    { ...call, args: { b: 1, a: ['x', null, { y: true }] } },
    { ...call, args: [] },
    { ...call, args: {} },
  ].map(digestOf);
  expect(new Set(digests).size).toBe(digests.length);
  expect(digestOf({ ...call, args: { a: [null, 'x', { y: true }], b: 1, c: undefined } })).toBe(digests[0]);
});

test.each([[new Map()], [new Date(0)], [Number.NaN], [10n], [{ a: new Uint8Array(1) }], [[undefined]], [() => 1]])(
  'what JSON would change without a word has no digest',
  (args) => expect(() => canonicalJson(args)).toThrow(TypeError),
);

test('secrets are hidden in texts, keys and numbers, and what is left is JSON', () => {
  const hide = (text: string) => text.replaceAll(/1234567890|","/g, '[REDACTED]');
  const shown = hideIn({ 1234567890: [1234567890, 'x1234567890y', null, true, 7], 'a","b': 1 }, hide);
  expect(JSON.parse(JSON.stringify(shown))).toEqual({ '[REDACTED]': ['[REDACTED]', 'x[REDACTED]y', null, true, 7], 'a[REDACTED]b': 1 });
});
