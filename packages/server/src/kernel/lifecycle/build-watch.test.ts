import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { watchBuild } from './build-watch.ts';

it('tells once that another build was put in place of the running one', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
  try {
    const file = join(dir, '.sources');
    writeFileSync(file, 'one');
    const clock = createStepClock();
    let told = 0;
    using build = watchBuild({ stampFile: pathToFileURL(file), clock, onReplaced: () => (told += 1) });
    const look = async () => {
      clock.advance(60_000);
      await new Promise((done) => setTimeout(done, 5));
    };
    await look();
    await look();
    expect([build.isReplaced(), told]).toEqual([false, 0]);
    writeFileSync(file, 'two');
    await expect.poll(async () => (await look(), build.isReplaced())).toBe(true);
    await look();
    expect(told).toBe(1);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
