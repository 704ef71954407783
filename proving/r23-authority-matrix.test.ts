import { expect, test } from 'vitest';
import { proveAuthorityMatrix } from './r23-authority-matrix.ts';

test('every method and route allows each token exactly what its scopes grant', async () => {
  const report = await proveAuthorityMatrix();
  expect(report.wrong).toEqual([]);
  expect(report.cells['rpc'] ?? 0).toBeGreaterThan(200);
  expect(report.cells['ws']).toBe(report.cells['rpc']);
});

test('a build with one method that skips the scope check is caught', async () => {
  const report = await proveAuthorityMatrix({ only: 'tokens.create', broken: 'method-without-scope' });
  expect(report.wrong.filter((line) => line.includes('tokens.create × rpc'))).not.toEqual([]);
  expect(report.wrong.some((line) => line.startsWith('traces:'))).toBe(true);
});
