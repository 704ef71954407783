import { expect, test } from 'vitest';
import { findStale, generateDocuments } from './gen.ts';

test('generates the same bytes from the same contract, each file ending with one newline', async () => {
  const documents = await generateDocuments();
  expect([...(await generateDocuments())]).toEqual([...documents]);
  for (const [file, text] of documents) expect(text.endsWith('\n') && !text.endsWith('\n\n'), file).toBe(true);
  expect(findStale(documents, documents)).toEqual([]);
});

test('names a stale file with the first line that differs, and a missing one as missing', () => {
  const documents = new Map([
    ['a.md', 'one\ntwo\nthree\n'],
    ['b.md', 'x\n'],
  ]);
  expect(findStale(documents, new Map([['a.md', 'one\n2\nthree\n']]))).toEqual(['a.md is stale: line 2\n  - 2\n  + two', 'b.md is missing.']);
});
