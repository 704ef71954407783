import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { AppError } from '../../../../kernel/app-error.ts';
import { systemClock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { openDb } from '../../../../kernel/db/sqlite/open-db.ts';
import { type Log, silentLog } from '../../../../kernel/log.ts';
import { createFileTaints } from './file-taint.ts';
import { closeWindow } from './taint-store.ts';

const base = mkdtempSync(join(tmpdir(), 'gatehouse-taint-'));
afterEach(() => rmSync(base, { recursive: true, force: true }));

test('a command whose end cannot be stored ends, and what it wrote is still found', async () => {
  const workspaceDir = join(base, 'workspace');
  mkdirSync(join(workspaceDir, 'data'), { recursive: true });
  const workerUrl = new URL('../../../../storage-worker.ts', import.meta.url);
  await using real = await openDb({ dataDir: join(base, 'data'), workerUrl, clock: systemClock, log: silentLog });
  let isFull = true;
  const db: Db = Object.assign(Object.create(real) as Db, {
    read: real.read.bind(real),
    write: (operation: Parameters<Db['write']>[0], input: unknown) =>
      operation === closeWindow && isFull ? Promise.reject(new AppError('unavailable', 'The disk is full')) : real.write(operation, input),
  });
  const warned: string[] = [];
  const log: Log = { ...silentLog, warn: (_, message) => warned.push(message) };
  const taints = createFileTaints({ db, clock: systemClock, log, bootId: 'boot' });
  const place = { agentId: 'default', workspaceDir };

  const command = await taints.beginCommand(place, true);
  writeFileSync(join(workspaceDir, 'data/page.txt'), 'from outside');
  await command.end();
  expect(warned).toEqual([expect.stringContaining('what a command wrote')]);
  await expect(taints.isTainted(place, 'data/page.txt')).rejects.toMatchObject({ code: 'unavailable' });
  isFull = false;
  expect(await taints.isTainted(place, 'data/page.txt')).toBe(true);
});
