import { expect, test } from 'vitest';
import { chromiumPath } from '../e2e/lib/browser.ts';
import { proveBrowserAttacks } from './r30-browser-attacks.ts';

if (chromiumPath === undefined) console.warn('R30: the pages are skipped, there is no Chromium on this machine');

test('no page of another site reads or changes anything', async () => {
  const report = await proveBrowserAttacks();
  expect(report.wrong).toEqual([]);
  expect(report.cases).toBeGreaterThan(20);
  expect(report.browser?.attempts ?? Number.POSITIVE_INFINITY).toBeGreaterThan(100);
});
