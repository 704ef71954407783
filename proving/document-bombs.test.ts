import { expect, test } from 'vitest';
import { proveDocumentBombs } from './document-bombs.ts';

test('bombs hold neither the event loop nor the memory', async () => {
  const { wrong } = await proveDocumentBombs({ rounds: 1, only: /endless text|gzip of 300|claims 60000/ });
  expect(wrong).toEqual([]);
});

test('a build that reads documents on the event loop is caught', async () => {
  const { wrong } = await proveDocumentBombs({ rounds: 1, only: /PDF whose text/, broken: 'documents-in-the-daemon' });
  expect(wrong).not.toEqual([]);
});
