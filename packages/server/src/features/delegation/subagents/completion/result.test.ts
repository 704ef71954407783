import { expect, test } from 'vitest';
import { tailOf, headOf } from '../../../../kernel/cut-text.ts';
import { detectResult, keepEnds } from './result.ts';

test('distinguishes json, jsonl, csv, html and text, and counts rows', () => {
  expect(detectResult('[{"a":1,"b":2},{"a":3}]')).toEqual({ kind: 'json', rows: 2, schema: ['a', 'b'] });
  expect(detectResult('{"total": 3}')).toEqual({ kind: 'json', schema: ['total'] });
  expect(detectResult('{"id":1}\n{"id":2}\n\n{"id":3}\n')).toEqual({ kind: 'jsonl', rows: 3, schema: ['id'] });
  expect(detectResult('name,"size, in m",note\na,1,\nb,2,"x, y"')).toEqual({ kind: 'csv', rows: 2, schema: ['name', 'size, in m', 'note'] });
  expect(detectResult('a;b\n1;2\n3;4')).toEqual({ kind: 'csv', rows: 2, schema: ['a', 'b'] });
  expect(detectResult('  <!DOCTYPE html><p>x')).toEqual({ kind: 'html' });
  for (const text of ['Hello, world.', 'one, two\nthree, four', '{"broken": ', '{"a":1}\nand prose', 'a,b\n1,2\nprose', ''])
    expect(detectResult(text)).toEqual({ kind: 'text' });
});

test('cuts between code points and keeps both ends', () => {
  expect(headOf('ab😀cd', 3)).toBe('ab');
  expect(tailOf('ab😀cd', 3)).toBe('cd');
  expect(headOf('abc', 3)).toBe('abc');
  const text = `${'😀'.repeat(1500)}${'é'.repeat(1500)}`;
  const kept = keepEnds(text, 2000);
  expect(kept.length).toBeLessThanOrEqual(2000);
  expect(kept.isWellFormed()).toBe(true);
  expect(kept.startsWith('😀') && kept.endsWith('é') && kept.includes('\n[…]\n')).toBe(true);
  expect(kept.indexOf('\n[…]\n')).toBeGreaterThan(1100);
});
