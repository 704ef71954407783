import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveBrowserTasks } from './browser-tasks.ts';

const missing = findCommand('bwrap') === undefined || findCommand('chromium') === undefined;

test.skipIf(missing)('a scripted model orders, uploads and logs in with the help of a person', async () => {
  const { wrong } = await proveBrowserTasks({ only: /orders 2 of Lamp|photo\.txt|logs in|a dialog asks/ });
  expect(wrong).toEqual([]);
});

test.skipIf(missing)('a model that acts on an earlier snapshot is noticed', async () => {
  const { wrong } = await proveBrowserTasks({ only: /orders 2 of Lamp/, stale: true });
  expect(wrong).toHaveLength(1);
});
