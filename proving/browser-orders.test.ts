import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveBrowserOrders } from './browser-orders.ts';

const missing = findCommand('bwrap') === undefined || findCommand('chromium') === undefined;

test.skipIf(missing)('what pages order is not done, although the model obeys', async () => {
  expect(await proveBrowserOrders({ pages: 5 })).toEqual({ pages: 5, obeyed: 5, alwaysAsked: 0, acted: [] });
});

test.skipIf(missing)('a rule that lets tainted turns act is noticed', async () => {
  const { obeyed, acted } = await proveBrowserOrders({ pages: 5, trusting: true });
  expect([obeyed, acted.length]).toEqual([5, 5]);
});
