import { expect, test } from 'vitest';
import { createRunsApi, type RunsApiDeps } from './runs-api.ts';

test('a wait that is aborted while its run is read rejects once, and nothing else notices', async () => {
  const reading = Promise.withResolvers<object>();
  const deps = { db: { read: () => reading.promise }, runner: { live: () => undefined }, waiters: { listen: () => () => {} } };
  const halt = new AbortController();
  const unhandled: unknown[] = [];
  const notice = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', notice);
  const ended = createRunsApi(deps as unknown as RunsApiDeps).ended('run', halt.signal);
  halt.abort(new Error('halted'));
  await new Promise((done) => setTimeout(done, 20));
  reading.resolve({ id: 'run', state: 'queued', endReason: null });
  await expect(ended).rejects.toThrow('halted');
  process.off('unhandledRejection', notice);
  expect(unhandled).toEqual([]);
});
