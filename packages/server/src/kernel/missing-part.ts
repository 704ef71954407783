/** Message for a module of the program that is no longer on disk; the process has loaded only some of them. */
export const missingPart = 'A file of the program is missing, because its folder was removed or replaced under the running daemon: restart it';

/** True for an import or thread that failed because its module is missing, and for errors caused by that. */
export function isMissingPart(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND')) return true;
  return isMissingPart(error.cause);
}
