/** What to say where a module of the program is not on disk any more; the process has loaded only a part of them. */
export const missingPart = 'A file of the program is missing, because its folder was removed or replaced under the running daemon: restart it';

/** True of an import or a thread that failed for want of its module, and of what was thrown because of it. */
export function isMissingPart(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND')) return true;
  return isMissingPart(error.cause);
}
