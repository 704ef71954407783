import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { acquireLock } from './lock-file.ts';
import { ownIdentity } from './process-identity.ts';

let dir: string;
const lockFile = () => join(dir, 'daemon.lock');

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A process that takes the lock and then does nothing. */
async function holder() {
  const script = `import { acquireLock } from ${JSON.stringify(new URL('./lock-file.ts', import.meta.url).href)}; acquireLock(process.argv[1]); console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

it('is refused while another process holds it, naming its pid, and free once that process was killed', async () => {
  const child = await holder();
  try {
    expect(() => acquireLock(dir)).toThrow(expect.objectContaining({ reason: 'locked', message: expect.stringContaining(`pid ${child.pid}`) }));
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  acquireLock(dir).release();
});

it.runIf(process.platform === 'linux')('is stale once its holder was killed, though nobody collected it yet', async () => {
  // A parent that never waits, as process 1 of many a container.
  const script = `import { acquireLock } from ${JSON.stringify(new URL('./lock-file.ts', import.meta.url).href)}; acquireLock(process.argv[1]); console.log('held'); setInterval(() => {}, 1000);`;
  const parent = spawn('sh', ['-c', '"$0" --input-type=module -e "$1" "$2" & exec sleep 60', process.execPath, script, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(parent.stdout, 'data');
    const { pid } = JSON.parse(readFileSync(lockFile(), 'utf8')) as { pid: number };
    expect(() => acquireLock(dir)).toThrow(expect.objectContaining({ reason: 'locked' }));
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z (\S+ ){16}1 /);
    acquireLock(dir).release();
  } finally {
    parent.kill('SIGKILL');
  }
});

it('is free after its release and leaves no files', () => {
  acquireLock(dir).release();
  acquireLock(dir).release();
  expect(readdirSync(dir)).toEqual([]);
});

it('is stale when its pid belongs to a later process, an earlier boot of the machine, or nobody', () => {
  const own = ownIdentity();
  for (const stale of [
    { ...own, startTicks: (own.startTicks ?? 0) - 1 },
    { ...own, machineBoot: 'an earlier one' },
    { ...own, pid: 2 ** 30 },
  ]) {
    writeFileSync(lockFile(), JSON.stringify(stale));
    const lock = acquireLock(dir);
    expect(JSON.parse(readFileSync(lockFile(), 'utf8'))).toEqual(own);
    lock.release();
  }
  writeFileSync(lockFile(), 'not a lock');
  acquireLock(dir).release();
});

it('is held against the same process too', () => {
  const lock = acquireLock(dir);
  expect(() => acquireLock(dir)).toThrow(/Another daemon/);
  lock.release();
});

it('is given to one of many that find it stale at once', async () => {
  writeFileSync(lockFile(), JSON.stringify({ ...ownIdentity(), pid: 2 ** 30 }));
  const script = `import { acquireLock } from ${JSON.stringify(new URL('./lock-file.ts', import.meta.url).href)}; try { acquireLock(process.argv[1]); console.log('won'); setInterval(() => {}, 1000); } catch (error) { console.log(error.reason); }`;
  const children = Array.from({ length: 6 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script, dir], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  const said = await Promise.all(children.map(async (child) => String((await once(child.stdout, 'data'))[0]).trim()));
  for (const child of children) child.kill('SIGKILL');
  expect(said.toSorted()).toEqual(['locked', 'locked', 'locked', 'locked', 'locked', 'won']);
});
