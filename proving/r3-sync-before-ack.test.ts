import { onPostgres } from '@gatehouse/testkit/sql';
import { describe, expect, test } from 'vitest';
import { straceMissing } from './lib/strace.ts';
import { proveSyncBeforeAck } from './r3-sync-before-ack.ts';

const missing = straceMissing((line) => console.log(line));
if (missing !== undefined) console.warn(`R3 is skipped: ${missing}`);

describe.skipIf(missing !== undefined || onPostgres)(`sync before acknowledgement${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('no acknowledgement leaves before its bytes are synced', async () => {
    const report = await proveSyncBeforeAck({ each: 8 });
    expect(report.unseen).toEqual([]);
    expect(report.early).toEqual([]);
    expect(report.acks).toBe(48);
  });
});
