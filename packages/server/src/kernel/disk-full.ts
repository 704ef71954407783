import { StartError } from './lifecycle/start-error.ts';

const sqliteFull = 13;

/** True for an error of the file system or of SQLite that means "no space left" or "over quota", also as the cause of another. */
export function isDiskFull(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && (at.code === 'ENOSPC' || at.code === 'EDQUOT')) return true;
    if (at instanceof StartError && at.reason === 'disk_full') return true;
    if ('errcode' in at && typeof at.errcode === 'number' && (at.errcode & 0xff) === sqliteFull) return true;
  }
  return false;
}
