import { onPostgres } from '@gatehouse/testkit/sql';
import { describe, expect, test } from 'vitest';
import { proveDiskFull, smallDiskMissing } from './r5-disk-full.ts';

const missing = await smallDiskMissing();
if (missing !== undefined) console.warn(`R5 is skipped: ${missing}`);

describe.skipIf(missing !== undefined || onPostgres)(`a full disk${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('the daemon keeps reading, loses nothing that it acknowledged and accepts writes again', async () => {
    const report = await proveDiskFull({ forMs: 600 });
    expect(report.wrong).toEqual([]);
    expect(report.readOnly).toBeGreaterThan(0);
    expect(report.refused).toBeGreaterThan(0);
  });
});
