import { onPostgres } from '@gatehouse/testkit/sql';
import { describe, expect, test } from 'vitest';
import { proveDiskFull, proveTelemetryFull, smallDiskMissing } from './r5-disk-full.ts';

const missing = await smallDiskMissing();
if (missing !== undefined) console.warn(`R5 is skipped: ${missing}`);

describe.skipIf(missing !== undefined || onPostgres)(`a full disk${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('the daemon keeps reading, loses nothing that it acknowledged and accepts writes again', async () => {
    const report = await proveDiskFull({ forMs: 600 });
    expect(report.wrong).toEqual([]);
    expect(report.readOnly).toBeGreaterThan(0);
    expect(report.refused).toBeGreaterThan(0);
  });

  test('of events and traces alone leaves turns as they are, is reported, and is made up for when there is space', async () => {
    const { wrong, turns, lines } = await proveTelemetryFull({ turns: 30 });
    expect(wrong).toEqual([]);
    expect(turns).toBe(33);
    // One line when it begins, one when it is over.
    expect(lines).toHaveLength(2);
  });
});
