import { expect, test } from 'vitest';
import { proveDocumentBombs } from './document-bombs.ts';

test('bombs hold neither the event loop nor the memory', async () => {
  const { wrong } = await proveDocumentBombs({ rounds: 1, only: /endless text|gzip of 300|claims 60000/, maxMb: 450 });
  expect(wrong).toEqual([]);
});
