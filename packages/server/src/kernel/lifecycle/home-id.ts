import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Returns the id of a data folder, the same at each start. It is bound to the folder itself: a copy gets another id, as daemons
 * in both may be running. The caller holds the lock of the folder.
 */
export function readHomeId(dataDir: string): string {
  const file = join(dataDir, 'home-id');
  const { dev, ino } = statSync(dataDir, { bigint: true });
  const folder = `${dev}:${ino}`;
  const [id, of] = readParts(file);
  if (id !== undefined && id !== '' && of === folder) return id;
  const newId = randomUUID();
  writeFileSync(`${file}.next`, `${newId} ${folder}\n`, { mode: 0o600 });
  renameSync(`${file}.next`, file);
  return newId;
}

/** An unreadable file only delays the take-over from an earlier daemon until its lease has lapsed. */
function readParts(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').trim().split(' ');
  } catch {
    return [];
  }
}
