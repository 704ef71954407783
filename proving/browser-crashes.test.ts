import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveBrowserCrashes } from './browser-crashes.ts';

const missing = findCommand('bwrap') === undefined || findCommand('chromium') === undefined;

test.skipIf(missing)('a killed browser and one that hangs are reported, start again and leave nothing', async () => {
  const { wrong } = await proveBrowserCrashes({ crashes: 4, seed: 1 });
  expect(wrong).toEqual([]);
});
