import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createWatchBudget, FolderWatch } from './folder-watch.ts';

test('watches the folders nearest to the root, within the limit of all sources, and returns what it does not need', async () => {
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-watch-'));
  for (const path of ['one/a/b', 'two/c']) mkdirSync(join(base, path), { recursive: true });
  const budget = createWatchBudget(4);
  let [one, two] = [0, 0];
  {
    using first = new FolderWatch(join(base, 'one'), budget, () => (one += 1));
    using second = new FolderWatch(join(base, 'two'), budget, () => (two += 1));
    expect(await first.keep(['a', 'a/b'])).toEqual({ opened: 2, unwatched: 0 });
    expect(await second.keep(['c'])).toEqual({ opened: 0, unwatched: 1 });
    writeFileSync(join(base, 'one/a/b/x.md'), 'x');
    await expect.poll(() => one).toBeGreaterThan(0);
    writeFileSync(join(base, 'two/c/x.md'), 'x');
    expect(await first.keep(['a'])).toEqual({ opened: 0, unwatched: 0 });
    expect(await second.keep(['c'])).toEqual({ opened: 1, unwatched: 0 });
    expect(two).toBe(0);
    // Another folder with the name of the root.
    renameSync(join(base, 'two'), join(base, 'moved'));
    mkdirSync(join(base, 'two/c'), { recursive: true });
    expect(await second.keep(['c'])).toEqual({ opened: 2, unwatched: 0 });
    writeFileSync(join(base, 'two/c/y.md'), 'y');
    await expect.poll(() => two).toBeGreaterThan(0);
  }
  expect(budget.left).toBe(4);
  rmSync(base, { recursive: true });
});
