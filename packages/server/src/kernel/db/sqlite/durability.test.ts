import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { acquireLock } from '../../lifecycle/lock-file.ts';
import type { StartError } from '../../lifecycle/start-error.ts';
import { silentLog } from '../../log.ts';
import { databaseFile, restoringFile } from './database-files.ts';
import { openDb, type OpenDbOptions } from './open-db.ts';
import { restoreBackup } from './restore.ts';
import { addMany, addNote, countNotes, listTexts, migrations } from './testing/parts.ts';

let dataDir: string;
let backupFile: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
  backupFile = join(dataDir, 'backups', 'copy.db');
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const open = (options: Partial<OpenDbOptions> = {}) =>
  openDb({ dataDir, workerUrl: new URL('./testing/worker.ts', import.meta.url), clock: systemClock, log: silentLog, ...options });

async function storedTexts(): Promise<string[]> {
  await using db = await open();
  return await db.read(listTexts, {});
}

it('keeps every acknowledged write when the process is killed', async () => {
  let acknowledged = 0;
  for (let round = 0; round < 3; round++) {
    const before = (existsSync(databaseFile(dataDir)) ? await storedTexts() : []).length;
    const child = spawn(process.execPath, [fileURLToPath(new URL('./testing/writing-child.ts', import.meta.url)), dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    child.stdout.on('data', (chunk) => (printed += String(chunk)));
    await expect.poll(() => printed.split('\n').length).toBeGreaterThan(40 + round * 20);
    child.kill('SIGKILL');
    await once(child, 'close');
    // A truncated last line acknowledges nothing.
    const acks = printed.slice(0, printed.lastIndexOf('\n')).split('\n');
    const kept = (await storedTexts()).slice(before);
    expect(new Set(kept).size).toBe(kept.length);
    expect(acks.filter((ack) => !kept.includes(ack))).toEqual([]);
    acknowledged += acks.length;
  }
  expect(acknowledged).toBeGreaterThan(100);
}, 30_000);

describe('a backup', () => {
  it('made under load is one committed state, and comes back by a restore', async () => {
    const db = await open();
    await db.write(addMany, { count: 20_000, text: 'x'.repeat(200) });
    let next = 0;
    let stop = false;
    const client = async () => {
      while (!stop) await db.write(addNote, { text: `n${next++}` });
    };
    const clients = [client(), client(), client()];
    await sleep(20);
    const progress: number[] = [];
    const acknowledged = next - clients.length;
    const { bytes } = await db.backup(backupFile, (done, total) => progress.push(done / total));
    const atEnd = next;
    stop = true;
    await Promise.all(clients);
    await db.write(addNote, { text: 'after' });
    await db[Symbol.asyncDispose]();

    expect(bytes).toBe(statSync(backupFile).size);
    expect(readdirSync(join(dataDir, 'backups'))).toEqual(['copy.db']);
    expect(progress.length).toBeGreaterThan(2);
    expect(atEnd).toBeGreaterThan(acknowledged);

    const { replaced } = restoreBackup({ backupFile, dataDir, migrations });
    const texts = (await storedTexts()).slice(20_000);
    // Writers run side by side, but apply in the order of their calls: a prefix has no gap.
    expect(texts).toEqual(texts.map((_, index) => `n${index}`));
    expect(texts.length).toBeGreaterThanOrEqual(acknowledged);
    expect(texts.length).toBeLessThanOrEqual(atEnd);
    const old = new DatabaseSync(replaced ?? '');
    expect(old.prepare('SELECT text FROM note ORDER BY id DESC LIMIT 1').get()).toEqual({ text: 'after' });
    old.close();
  }, 20_000);

  it('that is damaged, foreign, newer or missing is refused without moving anything', async () => {
    const db = await open();
    await db.write(addMany, { count: 2_000, text: 'x'.repeat(200) });
    await db.backup(backupFile);
    await db[Symbol.asyncDispose]();
    const restore = (known = migrations) => restoreBackup({ backupFile, dataDir, migrations: known });

    expect(() => restore(migrations.slice(0, 1))).toThrow(expect.objectContaining({ reason: 'newer_schema' }));
    overwrite(backupFile, 8 * 4096, 4096);
    expect(() => restore()).toThrow(expect.objectContaining({ reason: 'damaged' }));
    overwrite(backupFile, 0, 4096);
    expect(() => restore()).toThrow(
      expect.objectContaining({ reason: 'damaged', message: expect.stringMatching(/^The backup .* cannot be used .*nothing was changed/) }),
    );
    rmSync(backupFile);
    expect(() => restore()).toThrow(/There is no backup file/);
    new DatabaseSync(backupFile).exec('CREATE TABLE theirs (id INTEGER)');
    expect(() => restore()).toThrow(expect.objectContaining({ reason: 'foreign_database' }));
    expect(readdirSync(dataDir).toSorted()).toEqual(['backups', 'gatehouse.db', 'lock.db', 'telemetry.db']);
    expect(await storedTexts()).toHaveLength(2_000);
  });

  it('is not restored while a daemon holds the lock', async () => {
    const lock = acquireLock(dataDir);
    const db = await open();
    await db.backup(backupFile);
    await db[Symbol.asyncDispose]();
    expect(() => restoreBackup({ backupFile, dataDir, migrations })).toThrow(expect.objectContaining({ reason: 'locked' }));
    lock.release();
    restoreBackup({ backupFile, dataDir, migrations });
  });

  it('whose restore was interrupted is finished by the next start', async () => {
    const db = await open();
    await db.write(addNote, { text: 'saved' });
    await db.backup(restoringFile(dataDir));
    await db.write(addNote, { text: 'newer' });
    await db[Symbol.asyncDispose]();
    expect(await storedTexts()).toEqual(['saved']);
    expect(existsSync(restoringFile(dataDir))).toBe(false);
  });
});

describe('a damaged database', () => {
  async function fill(): Promise<void> {
    await using db = await open();
    await db.write(addMany, { count: 5_000, text: 'x'.repeat(200) });
  }

  it('with an unreadable header stops the start and says how to recover', async () => {
    await fill();
    overwrite(databaseFile(dataDir), 0, 4096);
    await expect(open()).rejects.toMatchObject({ reason: 'damaged', message: expect.stringContaining('gatehouse restore <backup file>') });
  });

  it('with unreadable content is reported by the check after an unclean shutdown', async () => {
    await fill();
    overwrite(databaseFile(dataDir), 100 * 4096, 4096 * 3);
    const report = Promise.withResolvers<StartError>();
    const clock = createStepClock();
    await using db = await open({ check: true, clock, onDamage: report.resolve });
    clock.advance(10_000);
    expect((await report.promise).reason).toBe('damaged');
    expect((await db.status()).schemaVersion).toBe(2);
  });

  it('is not reported when it is intact', async () => {
    await fill();
    const lines: string[] = [];
    const damage: StartError[] = [];
    const checked = Promise.withResolvers<void>();
    const log = {
      ...silentLog,
      info: (_: unknown, message: string) => {
        lines.push(message);
        if (message.includes('no damage')) checked.resolve();
      },
    };
    const clock = createStepClock();
    await using db = await open({ check: true, clock, log, onDamage: (error) => damage.push(error) });
    clock.advance(9_999);
    expect(lines).toEqual([]);
    clock.advance(1);
    await checked.promise;
    expect(damage).toEqual([]);
    expect(await db.read(countNotes, {})).toBe(5_000);
  });
});

it('loads neither the query builder nor SQLite on the main thread', async () => {
  const script = `import { registerHooks } from 'node:module';
    const seen = [];
    registerHooks({ resolve(specifier, context, next) { const found = next(specifier, context); seen.push(found.url); return found; } });
    const { openDb } = await import(${JSON.stringify(new URL('./open-db.ts', import.meta.url).href)});
    const { operations } = await import(${JSON.stringify(new URL('../../../transactions/registry.ts', import.meta.url).href)});
    const { systemClock } = await import(${JSON.stringify(new URL('../../clock.ts', import.meta.url).href)});
    const { silentLog } = await import(${JSON.stringify(new URL('../../log.ts', import.meta.url).href)});
    const db = await openDb({ dataDir: process.argv[1], clock: systemClock, log: silentLog });
    await db.read(operations.find((operation) => operation.name === 'agents.list'), {});
    await db[Symbol.asyncDispose]();
    console.log(JSON.stringify({ operations: operations.length, seen: [...new Set(seen)], sqlite: process.moduleLoadList.includes('NativeModule sqlite') }));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.on('data', (chunk) => (printed += String(chunk)));
  await once(child, 'close');
  const { operations, seen, sqlite }: { operations: number; seen: string[]; sqlite: boolean } = JSON.parse(printed);
  expect(operations).toBeGreaterThan(10);
  expect(seen.some((url) => url.endsWith('/open-db.ts'))).toBe(true);
  expect(seen.filter((url) => /kysely|node:sqlite/.test(url))).toEqual([]);
  expect(sqlite).toBe(false);
});

function overwrite(file: string, from: number, length: number): void {
  const handle = openSync(file, 'r+');
  writeSync(handle, Buffer.alloc(length, 0xa5), 0, length, from);
  closeSync(handle);
}
