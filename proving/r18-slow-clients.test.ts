import { describe, test } from 'vitest';
import { proveSlowClients } from './r18-slow-clients.ts';

// Both wait for the same clock, so they wait together.
describe.concurrent('slow clients', () => {
  test('are gone after a while, and other clients are not affected', async ({ expect }) => {
    // Until all are gone, however long a busy machine takes; the full form requires 12 s.
    const { header, body, good } = await proveSlowClients({ each: 40, withinMs: 45_000 });
    expect([header.left, header.answers, body.left, body.answers]).toEqual([0, { 408: 40 }, 0, { 408: 40 }]);
    expect(good.failed).toEqual([]);
    expect(good.requests).toBeGreaterThan(100);
  });

  test('stay with the defaults of Node, and that is caught', async ({ expect }) => {
    const { header, body } = await proveSlowClients({ each: 10, broken: 'default-timeouts' });
    expect([header.left, body.left]).toEqual([10, 10]);
  });
});
