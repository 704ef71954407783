import { expect, test } from 'vitest';
import { proveOutwardRequests } from './r25-outward-requests.ts';

test('no address that a caller passes, and none that an answer leads to, is dialled unless it is public', async () => {
  const { wrong, urls, cells } = await proveOutwardRequests({ statuses: 1, each: 2 });
  expect(wrong).toEqual([]);
  expect(urls).toBeGreaterThanOrEqual(80);
  expect(Object.keys(cells).length).toBeGreaterThanOrEqual(12);
});
