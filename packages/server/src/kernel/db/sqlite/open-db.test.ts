import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { silentLog } from '../../log.ts';
import type { Db } from '../db.ts';
import { openDb, type OpenDbOptions } from './open-db.ts';
import * as parts from './testing/parts.ts';

const workerUrl = new URL('./testing/worker.ts', import.meta.url);

let dataDir: string;
let db: Db;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
});

afterEach(async () => {
  await db[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

const open = (options: Partial<OpenDbOptions> = {}) => openDb({ dataDir, workerUrl, clock: systemClock, log: silentLog, ...options });

describe('storage threads', () => {
  it('refuse calls beyond the bound of the queue and serve the accepted ones', async () => {
    db = await open({ maxPending: 10 });
    const outcomes = await Promise.allSettled(Array.from({ length: 15 }, (_, index) => db.write(parts.addNote, { text: `${index}` })));
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(10);
    expect(outcomes[14]).toMatchObject({ reason: { code: 'unavailable' } });
    await db.write(parts.addNote, { text: 'later' });
    expect(await db.read(parts.countNotes, {})).toBe(11);
  });

  it('answer many reads at once, while the reading thread starts and afterwards', async () => {
    db = await open({ settleMs: 0 });
    await db.write(parts.addMany, { count: 1_000, text: 'x' });
    for (let round = 0; round < 20; round++) {
      const counts = await Promise.all(Array.from({ length: 100 }, () => db.read(parts.countNotes, {})));
      expect(new Set(counts)).toEqual(new Set([1_000]));
    }
  });

  it('answer reads again once files that were moved are back', async () => {
    db = await open({ settleMs: 0 });
    await db.write(parts.addNote, { text: 'kept' });
    renameSync(dataDir, `${dataDir}.away`);
    // The writer answers until the reading thread has started.
    await expect.poll(() => db.read(parts.countNotes, {}).catch((error: unknown) => error)).toMatchObject({ code: 'unavailable' });
    renameSync(`${dataDir}.away`, dataDir);
    expect(await db.read(parts.countNotes, {})).toBe(1);
  });

  it('report a full disk in clear words and recover with the first write that works', async () => {
    db = await open();
    await db.write(parts.addNote, { text: 'before' });
    await db.write(parts.limitPages, { pages: 1 });
    const failed = await db.write(parts.addMany, { count: 1_000, text: 'x'.repeat(1_000) }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'unavailable', message: expect.stringContaining('disk of the database is full') });
    expect((await db.status()).state).toBe('read_only');
    expect(await db.read(parts.listTexts, {})).toEqual(['before']);
    await db.write(parts.limitPages, { pages: 100_000 });
    await db.write(parts.addNote, { text: 'after' });
    expect((await db.status()).state).toBe('ok');
    expect(await db.read(parts.listTexts, {})).toEqual(['before', 'after']);
  });

  it('recover from a full disk on their own, although nobody writes', async () => {
    const clock = createStepClock();
    db = await open({ clock });
    await db.write(parts.limitPages, { pages: 1 });
    await expect(db.write(parts.addMany, { count: 1_000, text: 'x'.repeat(1_000) })).rejects.toMatchObject({ code: 'unavailable' });
    expect((await db.status()).state).toBe('read_only');
    await expect.poll(async () => (clock.advance(5_000), (await db.status()).state)).toBe('ok');
  });

  it('reject waiting calls when the writer dies, and restart it', async () => {
    const clock = createStepClock();
    db = await open({ clock, settleMs: 1e9 });
    await db.write(parts.addNote, { text: 'kept' });
    const outcomes = await Promise.allSettled([db.write(parts.crash, {}), db.write(parts.addNote, { text: 'lost' })]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    expect((await db.status()).state).toBe('read_only');
    await expect(db.write(parts.addNote, { text: 'too early' })).rejects.toMatchObject({ code: 'unavailable' });
    clock.advance(1_000);
    await db.write(parts.addNote, { text: 'again' });
    expect((await db.status()).state).toBe('ok');
    expect(await db.read(parts.listTexts, {})).toEqual(['kept', 'again']);
  });

  it('search in a separate thread that keeps state, sees every write, and is restarted when it dies', async () => {
    const clock = createStepClock();
    db = await open({ clock, settleMs: 0 });
    await db.write(parts.addNote, { text: 'kept' });
    const first = await db.search(parts.remember, { text: 'one' });
    expect(first).toMatchObject({ asked: ['one'], notes: 1 });
    await db.write(parts.addNote, { text: 'seen' });
    expect(await db.search(parts.remember, { text: 'two' })).toEqual({ asked: ['one', 'two'], thread: first.thread, notes: 2 });
    await db.read(parts.countNotes, {});
    await expect.poll(async () => (await db.read(parts.remember, { text: 'plain' })).thread).not.toBe(first.thread);
    await expect(db.search(parts.crash, {})).rejects.toMatchObject({ code: 'unavailable' });
    await expect(db.search(parts.remember, { text: 'too early' })).rejects.toMatchObject({ code: 'unavailable' });
    clock.advance(1_000);
    expect(await db.search(parts.remember, { text: 'again' })).toMatchObject({ asked: ['again'], notes: 2 });
    await db[Symbol.asyncDispose]();
    await expect(db.search(parts.remember, { text: 'late' })).rejects.toMatchObject({ code: 'unavailable' });
    db = await open();
  });

  it('answer calls made before the close and refuse later ones', async () => {
    db = await open();
    const last = db.write(parts.addNote, { text: 'last' });
    await db[Symbol.asyncDispose]();
    expect(await last).toEqual({ added: 'last' });
    await expect(db.write(parts.addNote, { text: 'x' })).rejects.toMatchObject({ code: 'unavailable' });
    db = await open();
    expect(await db.read(parts.listTexts, {})).toEqual(['last']);
  });

  it('collect no statistics, which make queries scan a table that was small once, and drop existing ones', async () => {
    const withFile = <T>(look: (file: DatabaseSync) => T): T => {
      using file = new DatabaseSync(join(dataDir, 'gatehouse.db'));
      return look(file);
    };
    const statistics = (file: DatabaseSync) => file.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'`).all();
    db = await open();
    await db.write(parts.addNote, { text: 'only' });
    await db[Symbol.asyncDispose]();
    expect(withFile(statistics)).toEqual([]);
    withFile((file) => file.exec('ANALYZE'));
    expect(withFile(statistics)).not.toEqual([]);
    db = await open();
    expect(withFile(statistics)).toEqual([]);
  });
});
