import { existsSync, renameSync } from 'node:fs';
import { databaseFile, restoringFile, sidecars } from './database-files.ts';
import { syncPath } from './sync-path.ts';

/**
 * Puts a verified backup that waits under its `.restoring` name in the place of the database; the old files stay beside
 * it as `.replaced-<n>`. Whatever is there while the backup waits is old, so a restore that was cut off at any
 * point is finished by doing this again. Returns the name of the old file, or undefined when nothing waited.
 */
export function finishRestore(dataDir: string): { readonly replaced: string | undefined } | undefined {
  const waiting = restoringFile(dataDir);
  if (!existsSync(waiting)) return undefined;
  const file = databaseFile(dataDir);
  let number = 1;
  const aside = (suffix: string) => `${file}.replaced-${number}${suffix}`;
  // A cut-off restore has moved the database first: its sidecars still belong to the newest set-aside file.
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
