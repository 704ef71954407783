import { expect, test } from 'vitest';
import { parseWhere } from './where.ts';

test('conditions are joined by precedence: not, then and, then or', () => {
  expect(parseWhere('error')).toEqual({ kind: 'error' });
  expect(parseWhere('outcome = failed AND tool in (exec, "my tool") or not cost > 0.01')).toEqual({
    kind: 'or',
    parts: [
      {
        kind: 'and',
        parts: [
          { kind: 'text', field: 'outcome', operator: '=', values: ['failed'] },
          { kind: 'text', field: 'tool', operator: 'in', values: ['exec', 'my tool'] },
        ],
      },
      { kind: 'not', part: { kind: 'number', field: 'cost', operator: '>', value: 0.01 } },
    ],
  });
  expect(parseWhere('(error or agent = a)and duration>=1.5s')).toEqual({
    kind: 'and',
    parts: [
      { kind: 'or', parts: [{ kind: 'error' }, { kind: 'text', field: 'agent', operator: '=', values: ['a'] }] },
      { kind: 'number', field: 'duration', operator: '>=', value: 1500 },
    ],
  });
  expect(parseWhere('error = rate_limit')).toEqual({ kind: 'text', field: 'error', operator: '=', values: ['rate_limit'] });
  expect(parseWhere('model = "a\\"b"')).toMatchObject({ values: ['a"b'] });
});

test.each([
  ['', 1, 'expected a field'],
  ['banana = 1', 1, 'is not a field'],
  ['outcome failed', 9, 'expected one of = != ~ in'],
  ['outcome = failed and', 21, 'expected a field'],
  ['cost ~ 1', 6, 'expected one of'],
  ['cost > cheap', 8, 'expected a number'],
  ['tokens > 5s', 10, 'expected a number'],
  ['(error', 7, 'expected ")"'],
  ['error)', 6, 'instead of ")"'],
  ['agent in a', 10, 'expected "("'],
  ['agent in (a', 12, 'expected "," or ")"'],
  ['agent = "open', 9, 'unexpected'],
  ['error; drop table trace_record', 1, '"error;" is not a field'],
  ['"error"', 1, 'expected a field'],
  ['__proto__ = 1', 1, 'is not a field'],
])('%j is refused at position %i', (text, position, message) => {
  expect(() => parseWhere(text)).toThrow(
    expect.objectContaining({ code: 'invalid_params', message: expect.stringContaining(`(position ${position})`) }),
  );
  expect(() => parseWhere(text)).toThrow(message);
});

test('length, number of conditions, values and depth are limited', () => {
  const many = (count: number) => Array.from({ length: count }, () => 'error').join(' or ');
  expect(() => parseWhere(many(20))).not.toThrow();
  expect(() => parseWhere(many(21))).toThrow('more than 20 conditions');
  expect(() => parseWhere(`${'('.repeat(8)}error${')'.repeat(8)}`)).not.toThrow();
  expect(() => parseWhere(`${'('.repeat(9)}error${')'.repeat(9)}`)).toThrow('more than 8 levels');
  expect(() => parseWhere(`${'not '.repeat(9)}error`)).toThrow('more than 8 levels');
  expect(() => parseWhere(`agent in (${Array.from({ length: 21 }, () => 'a').join(',')})`)).toThrow('more than 20 values');
  expect(() => parseWhere(`agent = ${'a'.repeat(500)}`)).toThrow('at most 500 characters');
});
