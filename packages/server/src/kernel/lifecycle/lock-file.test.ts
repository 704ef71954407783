import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { acquireLock, lockHolder } from './lock-file.ts';
import { ownIdentity } from './process-identity.ts';

let dir: string;
const holderFile = () => join(dir, 'daemon.lock');
const source = `const { acquireLock } = await import(${JSON.stringify(new URL('./lock-file.ts', import.meta.url).href)});`;
const takeAndStay = `${source} try { acquireLock(process.argv[1]); console.log('won'); setInterval(() => {}, 1000); } catch (error) { console.log(error.reason); }`;
const locked = expect.objectContaining({ reason: 'locked' });

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A process that takes the lock, reports the result, and then does nothing. */
async function taker(...wrapper: string[]) {
  const node = [process.execPath, '--input-type=module', '-e', takeAndStay, dir] as const;
  const [program = node[0], ...rest] = wrapper.length === 0 ? node : [...wrapper, ...node];
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = await once(child.stdout, 'data');
  return { child, said: String(said).trim() };
}

it('refuses a second process, naming the first, and is free once the first was killed', async () => {
  const { child } = await taker();
  try {
    expect(() => acquireLock(dir)).toThrow(
      expect.objectContaining({ reason: 'locked', message: expect.stringMatching(new RegExp(`pid ${child.pid} on host .+ uses`)) }),
    );
    expect(lockHolder(dir)).toMatchObject({ pid: child.pid });
    // The content of daemon.lock is information only.
    rmSync(holderFile());
    expect(() => acquireLock(dir)).toThrow(locked);
    expect(lockHolder(dir)).toEqual({});
    writeFileSync(holderFile(), JSON.stringify({ ...ownIdentity(), pid: 2 ** 30 }));
    expect(() => acquireLock(dir)).toThrow(locked);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  acquireLock(dir).release();
});

it.runIf(process.platform === 'linux')('is free once its holder was killed, although nobody reaped it yet', async () => {
  // A parent that never waits, like process 1 of many containers.
  const parent = spawn('sh', ['-c', '"$0" --input-type=module -e "$1" "$2" & exec sleep 60', process.execPath, takeAndStay, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(parent.stdout, 'data');
    const { pid } = JSON.parse(readFileSync(holderFile(), 'utf8')) as { pid: number };
    expect(() => acquireLock(dir)).toThrow(locked);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z (\S+ ){16}1 /);
    acquireLock(dir).release();
  } finally {
    parent.kill('SIGKILL');
  }
});

/** What a container runtime does, as far as the lock could notice. */
const container = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc'] as const;
const canUnshare = spawnSync(container[0], [...container.slice(1), 'true']).status === 0;

it.runIf(canUnshare)('holds between two containers that share the folder', async () => {
  const first = await taker(...container);
  const second = await taker(...container);
  try {
    expect([first.said, second.said]).toEqual(['won', 'locked']);
    expect(() => acquireLock(dir)).toThrow(locked);
  } finally {
    for (const { child } of [first, second]) child.kill('SIGKILL');
  }
  await expect.poll(() => lockHolder(dir)).toBeUndefined();
  acquireLock(dir).release();
});

it('leaves only the empty lock.db behind', () => {
  acquireLock(dir).release();
  acquireLock(dir).release();
  expect(readdirSync(dir)).toEqual(['lock.db']);
  expect(readFileSync(join(dir, 'lock.db'))).toHaveLength(0);
});

it('replaces what an earlier holder left in daemon.lock', () => {
  const own = ownIdentity();
  for (const left of [
    JSON.stringify({ ...own, startTicks: (own.startTicks ?? 0) - 1 }),
    JSON.stringify({ ...own, machineBoot: 'an earlier one' }),
    'not a lock',
  ]) {
    writeFileSync(holderFile(), left);
    const lock = acquireLock(dir);
    lock.announce('http://127.0.0.1:4766');
    expect(JSON.parse(readFileSync(holderFile(), 'utf8'))).toMatchObject({ ...own, address: 'http://127.0.0.1:4766' });
    lock.release();
    expect(existsSync(holderFile())).toBe(false);
  }
});

it('excludes the same process too, and a holder whose lock.db was deleted', () => {
  const lock = acquireLock(dir);
  expect(() => acquireLock(dir)).toThrow(/Another daemon/);
  if (process.platform === 'linux') {
    rmSync(join(dir, 'lock.db'));
    expect(() => acquireLock(dir)).toThrow(/Another daemon/);
  }
  lock.release();
});

it('can be checked without being taken or created', () => {
  expect(lockHolder(dir)).toBeUndefined();
  expect(readdirSync(dir)).toEqual([]);
  acquireLock(dir).release();
  expect(lockHolder(dir)).toBeUndefined();
});

it('goes to one of many that ask at once', async () => {
  const takers = await Promise.all(Array.from({ length: 4 }, () => taker()));
  for (const { child } of takers) child.kill('SIGKILL');
  expect(takers.map(({ said }) => said).toSorted()).toEqual(['locked', 'locked', 'locked', 'won']);
});
