import { describe, expect, test } from 'vitest';
import { proveSlowClients } from './r18-slow-clients.ts';

describe('slow clients', () => {
  test('are gone after a while, and other clients are not affected', async () => {
    // Until all are gone, however long a busy machine takes; the full form requires 12 s.
    const { header, body, good } = await proveSlowClients({ each: 40, withinMs: 45_000 });
    expect([header.left, header.answers, body.left, body.answers]).toEqual([0, { 408: 40 }, 0, { 408: 40 }]);
    expect(good.failed).toEqual([]);
    expect(good.requests).toBeGreaterThan(100);
  });
});
