import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Clock, systemClock } from '../clock.ts';
import { beginLifetime } from './lifetime.ts';

let dir: string;
let now: number;
const clock: Clock = { ...systemClock, now: () => now };

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
  now = 1_800_000_000_000;
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A run that ends as if killed: without its last step, and with a lock that nobody holds. */
function crashedRun() {
  const lifetime = beginLifetime(dir, clock);
  lifetime.lock.release();
  return lifetime;
}

it('knows how the previous run ended', () => {
  const first = beginLifetime(dir, clock);
  expect(first).toMatchObject({ uncleanEnd: false, controlPlaneOnly: false });
  first[Symbol.dispose]();
  expect(crashedRun().uncleanEnd).toBe(false);
  const third = beginLifetime(dir, clock);
  expect(third.uncleanEnd).toBe(true);
  expect(third.bootId).not.toBe(first.bootId);
  third[Symbol.dispose]();
});

it('starts the control plane only after three unclean ends within five minutes', () => {
  for (let run = 0; run < 3; run++) {
    expect(crashedRun().controlPlaneOnly).toBe(false);
    now += 60_000;
  }
  expect(crashedRun().controlPlaneOnly).toBe(true);
});

it('starts as usual when the crashes lie further apart', () => {
  for (let run = 0; run < 5; run++) {
    expect(crashedRun().controlPlaneOnly).toBe(false);
    now += 150_000;
  }
});

it('forgets the crashes once a run has ended cleanly', () => {
  for (let run = 0; run < 3; run++) crashedRun();
  const careful = beginLifetime(dir, clock);
  expect(careful.controlPlaneOnly).toBe(true);
  careful[Symbol.dispose]();
  expect(crashedRun()).toMatchObject({ controlPlaneOnly: false, uncleanEnd: false });
});

it('starts with an unreadable record', () => {
  writeFileSync(join(dir, 'boots.json'), '[{"bootId":1},');
  expect(crashedRun()).toMatchObject({ controlPlaneOnly: false, uncleanEnd: false });
});

it('refuses a second daemon', () => {
  const lifetime = beginLifetime(dir, clock);
  expect(() => beginLifetime(dir, clock)).toThrow(expect.objectContaining({ reason: 'locked' }));
  lifetime[Symbol.dispose]();
});

it('identifies the folder over its runs, and not its copies, which may run at the same time', () => {
  const first = crashedRun();
  expect(crashedRun()).toMatchObject({ homeId: first.homeId });
  expect(crashedRun().bootId).not.toBe(first.bootId);
  const copy = join(dir, 'copy');
  cpSync(join(dir, 'home-id'), join(copy, 'home-id'));
  using copied = beginLifetime(copy, clock);
  expect(copied.homeId).not.toBe(first.homeId);
  writeFileSync(join(dir, 'home-id'), '');
  expect(crashedRun().homeId).not.toBe(first.homeId);
});
