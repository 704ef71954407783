import { describe, expect, it } from 'vitest';
import { AppError } from './app-error.ts';
import { parseJson } from './json.ts';

describe('parseJson', () => {
  it('parses what JSON.parse parses', () => {
    expect(parseJson('{"a":[1,"[[[[",{"b":null}],"\\ud800":"\\u0041"}')).toEqual({ a: [1, '[[[[', { b: null }], '\ud800': 'A' });
  });

  it('accepts 64 levels and refuses the 65th', () => {
    expect(parseJson('['.repeat(64) + ']'.repeat(64))).toBeInstanceOf(Array);
    expect(() => parseJson('['.repeat(65) + ']'.repeat(65))).toThrow(/more than 64 levels/);
    expect(() => parseJson('{"a":'.repeat(500_000))).toThrow(/levels deep/);
  });

  it('does not count brackets inside strings or side by side', () => {
    expect(parseJson(JSON.stringify({ text: '[{"\\'.repeat(1000) }))).toHaveProperty('text');
    expect(parseJson(`[${Array(1000).fill('[{}]').join(',')}]`)).toHaveLength(1000);
  });

  it.each(['{"__proto__":{"polluted":1}}', '{"a":[{"\\u005f_proto__":1}]}', '{"\\u005f\\u005f\\u0070roto__":1}'])(
    'refuses %s and leaves the prototype alone',
    (text) => {
      expect(() => parseJson(text)).toThrow(AppError);
      expect(Object.prototype).not.toHaveProperty('polluted');
    },
  );

  it('accepts the name of the key as a value', () => {
    expect(parseJson('{"content":"what is __proto__ \\u0041"}')).toEqual({ content: 'what is __proto__ A' });
  });

  it.each(['', 'NaN', '{"a":NaN}', '{"a":1,}', "{'a':1}", '{"a":1} x', '\ufeff{}'])('answers parse_error to %j without quoting it', (text) => {
    expect(() => parseJson(text)).toThrow(
      expect.objectContaining({ code: 'parse_error', message: expect.stringMatching(/^The text is not valid JSON( \(at position \d+\))?$/) }),
    );
  });
});
