import { existsSync, renameSync } from 'node:fs';
import { databaseFile, restoringFile, sidecars } from './database-files.ts';
import { syncPath } from './sync-path.ts';

/**
 * Replaces the database by a verified backup with the `.restoring` name; the old files stay next to it as `.replaced-<n>`.
 * Any database found while that backup exists is old, so an interrupted restore is finished by doing this again.
 * Returns the name of the old file, or undefined when no backup was pending.
 */
export function finishRestore(dataDir: string): { readonly replaced: string | undefined } | undefined {
  const waiting = restoringFile(dataDir);
  if (!existsSync(waiting)) return undefined;
  const file = databaseFile(dataDir);
  let number = 1;
  const aside = (suffix: string) => `${file}.replaced-${number}${suffix}`;
  // An interrupted restore moved the database first: its sidecars still belong to the newest set-aside file.
  while (existsSync(aside(''))) number += 1;
  const hasDatabase = existsSync(file);
  if (!hasDatabase && number > 1) number -= 1;
  for (const suffix of ['', ...sidecars]) {
    if (existsSync(file + suffix)) renameSync(file + suffix, aside(suffix));
  }
  renameSync(waiting, file);
  syncPath(dataDir);
  return { replaced: existsSync(aside('')) ? aside('') : undefined };
}
