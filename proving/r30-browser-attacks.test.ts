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

test('a build that does not check the origin is caught, by scripts and by pages', async () => {
  const { wrong, browser } = await proveBrowserAttacks({ broken: 'no-origin-check' });
  expect(wrong.some((line) => line.startsWith('Origin "null": POST /rpc was answered with 200'))).toBe(true);
  expect(wrong.some((line) => line.includes('left a trace'))).toBe(true);
  expect(browser === undefined || wrong.includes('page of a stranger: socket by query: opened')).toBe(true);
});
