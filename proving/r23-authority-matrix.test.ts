import { expect, test } from 'vitest';
import { proveAuthorityMatrix } from './r23-authority-matrix.ts';

test('every method and route allows each token exactly what its scopes grant', async () => {
  const report = await proveAuthorityMatrix();
  expect(report.wrong).toEqual([]);
  expect(report.cells['rpc'] ?? 0).toBeGreaterThan(200);
  expect(report.cells['ws']).toBe(report.cells['rpc']);
});
