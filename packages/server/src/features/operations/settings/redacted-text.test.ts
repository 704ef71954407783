import { expect, test } from 'vitest';
import * as z from 'zod';
import { protectedChanges } from './protected-keys.ts';
import { redactedLines } from './redacted-text.ts';
import { unifiedDiff } from './unified-diff.ts';

const secret = z.string().meta({ secret: true });
const schema = z.strictObject({
  gateway: z.strictObject({ tokens: z.array(z.strictObject({ id: z.string(), secret, scopes: z.array(z.string()) })) }).optional(),
  providers: z.record(z.string(), z.strictObject({ apiKey: secret, headers: z.record(z.string(), z.string()).meta({ secret: true }) })).default({}),
  webhooks: z.strictObject({ token: secret.optional() }).prefault({}),
});
const redacted = (text: string) => redactedLines(schema, text, (line) => line).join('\n');

test('the secrets of a text are hidden, its lines and everything else stay', () => {
  const text = `# key: sk-literal-123 of it all
gateway:
  tokens:
    - { id: ops, secret: "a b, c: d", scopes: ["*"] } # people
    - id: bot
      secret: \${BOT_TOKEN}
providers:
  local: { apiKey: sk-literal-123, headers: { x-origin: blue, authorization: 'Bearer \${KEY}' } }
  other:
    apiKey: |
      first line of it
      second line of it
    baseUrl: http://127.0.0.1/
webhooks:
  token: >-
    folded secret
    of two lines
logging: { level: info } # sk-literal-123
`;
  expect(redacted(text)).toBe(`# key: [REDACTED] of it all
gateway:
  tokens:
    - { id: ops, secret: [REDACTED], scopes: ["*"] } # people
    - id: bot
      secret: \${BOT_TOKEN}
providers:
  local: { apiKey: [REDACTED], headers: { x-origin: [REDACTED], authorization: 'Bearer \${KEY}' } }
  other:
    apiKey: [REDACTED]
      [REDACTED]
      [REDACTED]
    baseUrl: http://127.0.0.1/
webhooks:
  token: [REDACTED]
    [REDACTED]
    [REDACTED]
logging: { level: info } # [REDACTED]
`);
});

test.each([
  'providers: { a: { apiKey: sk-1234567',
  'apiKey: !x sk-1234567\nb: [',
  'a: &a sk-1234567\nproviders: {x: {apiKey: *a}}\n',
  'a: &a { apiKey: sk-1234567 }\nb: *a\n',
  'gateway: &a [sk-1234567]\nproviders: {x: {apiKey: *a}}\n',
])('nothing secret is shown of %j', (text) => {
  expect(redacted(text)).not.toContain('sk-1234567');
  expect(redacted(text).split('\n')).toHaveLength(text.split('\n').length);
});

test('line ends and a byte-order mark do not shift what is hidden', () => {
  expect(redacted('\uFEFFproviders:\r\n  a:\r\n    apiKey: sk-1234567 # x\r\n')).toBe('\uFEFFproviders:\r\n  a:\r\n    apiKey: [REDACTED] # x\r\n');
});

test.each([
  ['a\nb\nc', 'a\nb\nc', ''],
  ['a\nb\nc', 'a\nx\nc', '@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n'],
  ['', 'a', '@@ -1,1 +1,1 @@\n-\n+a\n'],
  ['1\n2\n3\n4\n5\n6\n7\n8\n9', '0\n1\n2\n3\n4\n5\n6\n7\n8', '@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n'],
  ['1\n2\n3\n4\n5\n6', '1\n2\n3\nx\n4\n5\n6', '@@ -1,6 +1,7 @@\n 1\n 2\n 3\n+x\n 4\n 5\n 6\n'],
])('the difference of %j and %j', (before, after, hunks) => {
  expect(unifiedDiff(before.split('\n'), after.split('\n'))).toBe(hunks === '' ? '' : `--- before\n+++ after\n${hunks}`);
});

test('keys that decide who may do what are protected, also as parts of a section', () => {
  const of = (before: unknown, after: unknown) => protectedChanges(before, after);
  const agent = { model: 'a/b', maxSteps: 5, tools: { allow: [] } };
  expect(of({ agents: { a: agent } }, { agents: { a: { ...agent, model: 'c/d', maxSteps: 6 } } })).toEqual([]);
  expect(of({ agents: { a: agent } }, { agents: { a: { ...agent, tools: { allow: ['exec'] } } } })).toEqual(['agents.a.tools']);
  expect(of({ agents: {} }, { agents: { b: agent } })).toEqual(['agents.b']);
  expect(of({ agents: {} }, { agents: { b: {} } })).toEqual(['agents.b']);
  expect(of({ agents: { b: agent } }, {})).toEqual(['agents']);
  expect(of({ gateway: { port: 1, rateLimit: { maxRequests: 1 } } }, { gateway: { port: 1, rateLimit: { maxRequests: 2 } } })).toEqual([]);
  expect(of({ gateway: { port: 1 } }, { gateway: { port: 2, tokens: [{ id: 'x' }] } })).toEqual(['gateway.port', 'gateway.tokens']);
  expect(of(undefined, { providers: { a: {} }, logging: {} })).toEqual(['providers']);
  expect(of({ logging: { level: 'info' } }, { logging: null })).toEqual([]);
});
