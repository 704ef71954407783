import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { watchBuild } from './build-watch.ts';

it('reports once that another build was installed, and that files of the running one are missing for as long as they are', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
  try {
    const [stamp, program] = [join(dir, '.sources'), join(dir, 'main-1234.js')];
    writeFileSync(stamp, 'one');
    writeFileSync(program, '');
    const clock = createStepClock();
    const notices: (string | undefined)[] = [];
    using build = watchBuild({
      files: { stamp: pathToFileURL(stamp), program: pathToFileURL(program) },
      clock,
      onReplaced: () => notices.push('replaced'),
      onFault: (fault) => notices.push(fault?.slice(0, 40)),
    });
    const look = async () => {
      clock.advance(10_000);
      await new Promise((done) => setTimeout(done, 5));
    };
    await look();
    await look();
    expect([build.isReplaced(), build.fault(), notices]).toEqual([false, undefined, []]);
    writeFileSync(stamp, 'two');
    await expect.poll(async () => (await look(), build.isReplaced())).toBe(true);
    await look();
    expect([build.fault(), notices]).toEqual([undefined, ['replaced']]);
    renameSync(program, `${program}.away`);
    await expect.poll(async () => (await look(), build.fault())).toContain('removed or replaced under the running daemon');
    renameSync(`${program}.away`, program);
    await expect.poll(async () => (await look(), build.fault())).toBe(undefined);
    await look();
    expect(notices).toEqual(['replaced', 'The files of the program were removed or', undefined]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
