import { describe, expect, it } from 'vitest';
import { exceptions } from './word-list.ts';
import { findPhrases } from './words.ts';

const found = (text: string, file = 'packages/server/src/x.ts') =>
  findPhrases(file, text).map(({ line, text: phrase }) => `${line}: ${phrase.trim()}`);

describe('the word list', () => {
  it.each([
    ['a comment', '// The run is gone on with after a restart.', ['1: gone on']],
    ['a documentation comment that begins with a fragment', '/** Of a gate that waits: its row. */', ['1: that waits', '1: /** Of']],
    ['a string', "const text = 'The payload is no JSON';", ['1: is no JSON']],
    ['an identifier', 'function createDoors(deps: HandsDeps) {}', ['1: Doors', '1: HandsDeps']],
    ['a later line', 'const a = 1;\nconst b = 2; // in place of a', ['2: in place of']],
  ])('finds private vocabulary in %s', (_, text, expected) => expect(found(text)).toEqual(expected));

  it.each([
    'There is no such file',
    'hands over the socket',
    'a value that is no longer used',
    'the term that it stands for',
    'const words = text.split(" ");',
    'message.content.parts',
  ])('accepts %j', (text) => expect(found(text)).toEqual([]));

  it('accepts an excepted line in its file alone', () => {
    expect(found("status: z.enum(['told'])", 'packages/server/src/features/environment/background/store.ts')).toEqual([]);
    expect(found("status: z.enum(['told'])")).toEqual(['1: told']);
  });

  it('has at most fifty exceptions, each with a reason', () => {
    expect(exceptions.length).toBeLessThanOrEqual(50);
    for (const { reason } of exceptions) expect(reason).not.toBe('');
  });
});
