import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, test } from 'vitest';
import { canonicalJson, digestOf, hideIn } from './exact-call.ts';
import { turnInput } from '../../../../runtime/testing.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import * as z from 'zod';
import type { ApprovalRule } from '../config.ts';
import { compileRules, matchesGlob } from './rules.ts';

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
])('%j against %j: %s', (text, glob, expected) => expect(matchesGlob(text, glob)).toBe(expected));

test('a pattern of many stars takes time linear in the text', async () => {
  const match = (length: number) => matchesGlob('a'.repeat(length), `${'*a'.repeat(30)}*b`);
  expect(match(100)).toBe(false);
  expect(await cpuGrowth(7_500, match)).toBeLessThan(linear);
});

const tool: Tool = {
  name: 'reach',
  description: 'x',
  args: z.looseObject({}),
  risk: 'outward',
  effect: 'once',
  timeoutMs: 1,
  run: async () => ({ content: '' }),
};
const finds = (action: ApprovalRule['action'], match: Record<string, string>, args: unknown, exact = false) =>
  compileRules([{ tools: ['reach'], match, exact, action, tainted: false }])({ tool, args, turn: turnInput() }) !== undefined;

test.each([
  [{ path: '/data/secret/*' }, { path: '/data//secret/x' }],
  [{ path: 'secret' }, { path: 'secret/' }],
  [{ path: 'secret/*' }, { path: './secret/x' }],
  [{ url: 'https://evil.example/*' }, { url: 'HTTPS://Evil.EXAMPLE/x' }],
  [{ url: 'https://evil.example/*' }, { url: 'https://evil.example./x' }],
  [{ url: 'https://evil.example/*' }, { url: 'https:\\\\evil.example\\x' }],
  [{ url: 'https://evil.example/*' }, { url: ' https://evil.example:443' }],
  [{ url: 'http://127.0.0.1/*' }, { url: 'http://0x7f.1/' }],
])('a rule that stops %j also stops %j, which means the same to a tool; nothing passes by it', (match, args) => {
  expect(finds('deny', match, args)).toBe(true);
  expect(finds('ask', match, args)).toBe(true);
  expect(finds('auto', match, args)).toBe(false);
});

test('a different path or address does not match', () => {
  expect(finds('deny', { path: 'secret' }, { path: 'secrets' })).toBe(false);
  expect(finds('deny', { url: 'https://evil.example/*' }, { url: 'https://good.example/?https://evil.example/' })).toBe(false);
  expect(finds('deny', { text: 'a/b' }, { text: 'a:b' })).toBe(false);
});

test('an exact rule covers no call with further arguments', () => {
  const match = { command: 'make test' };
  expect(finds('auto', match, { command: 'make test' }, true)).toBe(true);
  expect(finds('auto', match, { command: 'make test', workdir: 'elsewhere' }, true)).toBe(false);
  expect(finds('auto', match, { command: 'make test', workdir: 'elsewhere' })).toBe(true);
  expect(finds('auto', {}, {}, true)).toBe(true);
  expect(finds('auto', {}, { command: 'make test' }, true)).toBe(false);
  expect(finds('auto', {}, ['make test'], true)).toBe(false);
});

const call = {
  agentId: 'a',
  conversationRef: 'c',
  tool: 't',
  fingerprint: '',
  args: { b: 1, a: [null, 'x', { y: true }] },
  workspaceDir: '/w',
  files: '',
};

test('the digest is equal for equal calls and differs for any difference', () => {
  const digests = [
    call,
    { ...call, agentId: 'b' },
    { ...call, conversationRef: 'd' },
    { ...call, tool: 'u' },
    { ...call, fingerprint: '1' },
    { ...call, workspaceDir: '/v' },
    { ...call, files: 'x' },
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

test('secrets are hidden in texts, keys and numbers, and the result is JSON', () => {
  const hide = (text: string) => text.replaceAll(/1234567890|","/g, '[REDACTED]');
  const shown = hideIn({ 1234567890: [1234567890, 'x1234567890y', null, true, 7], 'a","b': 1 }, hide);
  expect(JSON.parse(JSON.stringify(shown))).toEqual({ '[REDACTED]': ['[REDACTED]', 'x[REDACTED]y', null, true, 7], 'a[REDACTED]b': 1 });
});
