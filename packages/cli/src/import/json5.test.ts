import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Json5Error, parseJson5 } from './json5.ts';

test('every JSON text has its value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(parseJson5(text)).toEqual(JSON.parse(text));
    }),
  );
});

test('a long number that is none fails at once', () => {
  const started = performance.now();
  expect(() => parseJson5(`[${'1'.repeat(200_000)}x]`)).toThrow(Json5Error);
  expect(performance.now() - started).toBeLessThan(2_000);
});

test('what JSON5 adds is read', () => {
  const text = String.raw`// comment
  { plain: 1, $k_1: 'it\'s', "a": [1, .5, 2., +3, -0x10, Infinity,], /* inner */ 'b': 'two \
lines', c: null, d: true, 'e\u0041': "\x41\n", }`;
  expect(parseJson5(text)).toEqual({ plain: 1, $k_1: "it's", a: [1, 0.5, 2, 3, -16, Infinity], b: 'two lines', c: null, d: true, eA: 'A\n' });
  expect(parseJson5('{a:1}')).toEqual({ a: 1 });
});

test.each([
  ['', 1, 1, 'a value'],
  ['{\n "a" 1 }', 2, 6, 'a colon after "a"'],
  ['[1 2]', 1, 4, 'a comma or ]'],
  ['{"a": tru}', 1, 7, 'a value'],
  ['{} x', 1, 4, 'the end of the file'],
  ['"abc\n"', 1, 5, 'a closing "'],
  ['{ 1: 2 }', 1, 3, 'a key or }'],
  [`${'['.repeat(100)}`, 1, 66, 'at most 64 levels'],
])('%j fails at its place', (text, line, column, expected) => {
  const failure = ((): unknown => {
    try {
      return parseJson5(text);
    } catch (error) {
      return error;
    }
  })();
  expect(failure).toBeInstanceOf(Json5Error);
  expect(failure).toMatchObject({ line, column, message: `expected ${expected}` });
});

test('a key called "__proto__" changes no object', () => {
  const value = parseJson5('{ "__proto__": { "polluted": true } }') as object;
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect('polluted' in value).toBe(false);
});
