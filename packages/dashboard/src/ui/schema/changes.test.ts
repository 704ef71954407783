import { describe, expect, test } from 'vitest';
import { applyChanges, changesBetween } from './changes.ts';
import { pathText, valueAt, wirePath, withoutValueAt, withValueAt } from './paths.ts';

describe('changes between two documents', () => {
  test('are single keys: new sections key by key, removed ones as a whole, lists as one value', () => {
    const before = { logging: { level: 'info' }, gateway: { allowedHosts: ['a'], port: 1 }, exec: {} };
    const after = { logging: {}, gateway: { allowedHosts: ['a', 'b'], port: 1 }, agents: { one: {}, two: { name: 'Two', tools: { deny: [] } } } };
    expect(changesBetween(before, after)).toEqual([
      { path: ['exec'], value: null },
      { path: ['logging', 'level'], value: null },
      { path: ['gateway', 'allowedHosts'], value: ['a', 'b'] },
      { path: ['agents', 'one'], value: {} },
      { path: ['agents', 'two', 'name'], value: 'Two' },
      { path: ['agents', 'two', 'tools', 'deny'], value: [] },
    ]);
    expect(changesBetween(before, structuredClone(before))).toEqual([]);
  });

  test('never write a hidden secret of a list', () => {
    const token = (id: string, scopes = ['rpc']) => ({ id, secret: '[REDACTED]', scopes });
    const before = { tokens: [token('a'), token('b'), token('c')] };
    const after = { tokens: [token('b', ['api']), token('c'), { id: 'd', secret: 'new', scopes: [] }] };
    expect(changesBetween({ tokens: [token('a')] }, { tokens: [token('a', ['api'])] })).toEqual([{ path: ['tokens', 0, 'scopes'], value: ['api'] }]);
    expect(changesBetween(before, { tokens: [token('b'), token('c')] })).toEqual([{ path: ['tokens', 0], value: null }]);
    expect(changesBetween({ tokens: [...before.tokens, token('d')] }, after)).toEqual([
      { path: ['tokens', 0], value: null },
      { path: ['tokens', 0, 'scopes'], value: ['api'] },
      { path: ['tokens', 2, 'secret'], value: 'new' },
      { path: ['tokens', 2, 'scopes'], value: [] },
    ]);
  });

  test('are made in another document, which may lack what they refer to', () => {
    const changes = changesBetween({ a: { b: 1, c: 2 }, list: [1] }, { a: { b: 3 }, list: [1, 2] });
    expect(applyChanges({ a: { d: 4 } }, changes)).toEqual({ a: { d: 4, b: 3 }, list: [1, 2] });
    expect(applyChanges({}, [{ path: ['a'], value: null }])).toEqual({});
  });
});

describe('paths', () => {
  test('read as in messages of the server, and are safe to send', () => {
    const path = ['gateway', 'tokens', 0, 'a.b', '12'];
    expect(pathText(path)).toBe('gateway.tokens[0]["a.b"].12');
    expect(wirePath(path)).toBe('gateway.tokens[0]["a.b"]["12"]');
  });

  test('keep what is next to them', () => {
    const value = { a: { b: 1 }, c: { d: 2 } };
    const next = withValueAt(value, ['a', 'b'], 2);
    expect(next).toEqual({ a: { b: 2 }, c: { d: 2 } });
    expect(valueAt(next, ['c'])).toBe(value.c);
    expect(withValueAt({ list: [1, 2] }, ['list', 0], undefined)).toEqual({ list: [2] });
    expect(valueAt({}, ['constructor'])).toBeUndefined();
  });

  test('remove the sections that only the draft has', () => {
    const draft = { a: { b: { c: 1 } } };
    expect(withoutValueAt(draft, ['a', 'b', 'c'], {}, 0)).toEqual({});
    expect(withoutValueAt(draft, ['a', 'b', 'c'], { a: {} }, 0)).toEqual({ a: {} });
    expect(withoutValueAt(draft, ['a', 'b', 'c'], {}, 2)).toEqual({ a: { b: {} } });
  });
});
