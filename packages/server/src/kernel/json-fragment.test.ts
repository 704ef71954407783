import { describe, expect, it } from 'vitest';
import { joinFragments, textOf, toFragment } from './json-fragment.ts';

describe('a fragment of a JSON string', () => {
  it.each(['', 'plain', '"quoted"', 'back\\slash', 'line\nbreak', '\u2028', '😀', '\ud800'])('keeps %j', (text) => {
    expect(textOf(toFragment(text))).toBe(text);
  });

  it('keeps a text that arrives in several fragments', () => {
    expect(textOf(joinFragments([toFragment('She said "'), toFragment('no\n'), toFragment('"')]))).toBe('She said "no\n"');
  });
});
