import { expect, test } from 'vitest';
import { configChanges, configPatch } from './config-changes.ts';

const before = { name: 'Gate', model: 'a/b', tools: { profile: 'minimal', allow: ['exec'], deny: [] }, memory: { recall: { maxResults: 5 } } };

test('lists and sends only the keys that differ, by their paths', () => {
  const after = {
    name: 'Gate',
    tools: { profile: 'coding', allow: ['exec', 'web_fetch'], deny: [] },
    memory: { recall: { maxResults: 5 } },
    maxSteps: 7,
  };
  expect(configChanges(before, after)).toEqual([
    { path: 'model', before: 'a/b', after: undefined },
    { path: 'tools.profile', before: 'minimal', after: 'coding' },
    { path: 'tools.allow', before: ['exec'], after: ['exec', 'web_fetch'] },
    { path: 'maxSteps', before: undefined, after: 7 },
  ]);
  expect(configPatch(before, after)).toEqual({ model: null, tools: { profile: 'coding', allow: ['exec', 'web_fetch'] }, maxSteps: 7 });
});

test('equal configurations have no changes', () => {
  expect(configChanges(before, structuredClone(before))).toEqual([]);
  expect(configPatch(before, structuredClone(before))).toEqual({});
});

test('treats __proto__ as an ordinary key', () => {
  const after: Record<string, unknown> = JSON.parse('{"__proto__": {"polluted": true}}');
  const patch = configPatch({}, after);
  expect(Object.getOwnPropertyDescriptor(patch, '__proto__')?.value).toEqual({ polluted: true });
  expect('polluted' in {}).toBe(false);
});
