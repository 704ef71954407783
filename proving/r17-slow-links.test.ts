import { onPostgres } from '@gatehouse/testkit/sql';
import { describe, expect, test } from 'vitest';
import { namespaceMissing } from './lib/namespace.ts';
import { proveSlowLinks } from './r17-slow-links.ts';

const missing = namespaceMissing();
if (missing !== undefined) console.warn(`R17 is skipped: ${missing}`);

describe.skipIf(missing !== undefined || onPostgres)(`slow lines${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('a reader at 64 kB a second and 300 ms is kept and misses nothing', async () => {
    const report = await proveSlowLinks({ readers: 40, forMs: 9_000 });
    expect(report).toMatchObject({ readers: 40, cut: 0, incomplete: 0 });
    expect(report.behindMs).toBeGreaterThan(2_000);
  });
});
