import { expect, test } from 'vitest';
import { proveOutwardRequests } from './r25-outward-requests.ts';

test('no address that a caller passes, and none that an answer leads to, is dialled unless it is public', async () => {
  const { wrong, urls, cells } = await proveOutwardRequests({ statuses: 1, each: 2 });
  expect(wrong).toEqual([]);
  expect(urls).toBeGreaterThanOrEqual(80);
  expect(Object.keys(cells).length).toBeGreaterThanOrEqual(12);
});

test('a build that checks only the addresses of a name before connecting is caught', async () => {
  const only = ['web_fetch', 'link.process', 'web_search', 'mcp.test over http', 'mcp.connect over sse'];
  const { wrong } = await proveOutwardRequests({ statuses: 1, only, each: 5, broken: 'lookup-only-guard' });
  for (const caller of only)
    expect(
      wrong.filter((line) => line.startsWith(`${caller}, `)),
      caller,
    ).not.toEqual([]);
});
