import * as z from 'zod';
import { expect, test, vi } from 'vitest';

/** Counts the schemas that zod constructs, by the hook that it calls for each. */
async function countBuilt(act: () => unknown): Promise<number> {
  let built = 0;
  z.config({ postProcessor: () => void (built += 1) });
  try {
    await act();
  } finally {
    z.config({ postProcessor: undefined });
  }
  return built;
}

test('a process that loads the contract builds the schemas that it uses, once', async () => {
  vi.resetModules();
  let loaded!: typeof import('./index.ts');
  const atLoad = await countBuilt(async () => void (loaded = await import('./index.ts')));
  const { contract, events, routes } = loaded;
  const ofOne = await countBuilt(() => contract['session.list'].params);
  const again = await countBuilt(() => contract['session.list'].params);
  const ofAll = await countBuilt(() => {
    for (const { params, result } of Object.values(contract)) void [params, result];
    for (const { payload } of Object.values(events)) void payload;
    for (const route of Object.values<import('./index.ts').Route>(routes)) void [route.body?.(), route.response?.(), route.streamed?.()];
  });
  expect(ofOne).toBeGreaterThan(0);
  expect(again).toBe(0);
  expect(atLoad / (atLoad + ofOne + ofAll), `${atLoad} at load, ${ofAll} after`).toBeLessThan(0.4);
});
