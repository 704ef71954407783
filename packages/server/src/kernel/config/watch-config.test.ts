import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock } from '@gatehouse/testkit/step-clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { watchConfig } from './watch-config.ts';

let dir: string;
let file: string;
let clock: StepClock;
let changes: number;
let watching: AsyncDisposable;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gatehouse-watch-'));
  file = join(dir, 'config.yaml');
  await writeFile(file, 'one');
  clock = createStepClock();
  changes = 0;
  const onError = (error: unknown): never => {
    throw error;
  };
  watching = watchConfig({ file, clock, onChange: async () => void (changes += 1), onError });
});
afterEach(async () => {
  await watching[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

test('a notice is answered once the file has been quiet for a moment, whether it is written or replaced', async () => {
  const before = clock.pending();
  await writeFile(file, 'two');
  await expect.poll(() => clock.pending()).toBeGreaterThan(before);
  expect(changes).toBe(0);
  clock.advance(300);
  await expect.poll(() => changes).toBe(1);
  await writeFile(join(dir, 'draft'), 'three');
  await rename(join(dir, 'draft'), file);
  await expect.poll(() => clock.pending()).toBeGreaterThan(before);
  clock.advance(300);
  await expect.poll(() => changes).toBe(2);
});

test('without a notice the file is looked at each minute, and reported only when it is another one', async () => {
  clock.advance(60_000);
  await expect.poll(() => changes).toBe(1);
  clock.advance(60_000);
  await rm(file);
  clock.advance(60_000);
  await expect.poll(() => changes).toBe(2);
});
