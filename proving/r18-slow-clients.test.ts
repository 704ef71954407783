import { describe, test } from 'vitest';
import { proveSlowClients } from './r18-slow-clients.ts';

// Both wait for the same clock, so they wait together.
describe.concurrent('slow clients', () => {
  test('are gone within 12 seconds, and other clients are not affected', async ({ expect }) => {
    const { header, body, good } = await proveSlowClients({ each: 40 });
    expect([header.left, header.answers, body.left, body.answers]).toEqual([0, { 408: 40 }, 0, { 408: 40 }]);
    expect(good.failed).toEqual([]);
    expect(good.requests).toBeGreaterThan(100);
    // The full form measures, alone on the machine, and requires 100.
    expect(good.p99Ms).toBeLessThan(250);
  }, 60_000);

  test('stay with the defaults of Node, and that is caught', async ({ expect }) => {
    const { header, body } = await proveSlowClients({ each: 10, broken: 'default-timeouts' });
    expect([header.left, body.left]).toEqual([10, 10]);
  }, 60_000);
});
