import { AppError } from '../../app-error.ts';

/** Primary result codes of SQLite that the storage reacts to. */
const codes = { ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  // The upper bits hold the extended code.
  return error.errcode & 0xff;
}

/** True when the disk refused a write, so that later writes may fail as well: the storage counts as read-only. */
export function isMediumFailure(error: unknown): boolean {
  const code = primaryCode(error);
  return code === codes.full || code === codes.ioError || code === codes.cannotOpen;
}

export function isDamage(error: unknown): boolean {
  const code = primaryCode(error);
  return code === codes.corrupt || code === codes.notADatabase;
}

/** Explains to clients what the machine's owner has to repair; other errors pass unchanged. */
export function explainSqliteError(error: unknown): unknown {
  switch (primaryCode(error)) {
    case codes.full:
      return new AppError('unavailable', 'The disk of the database is full: nothing can be stored until space is freed', { cause: error });
    case codes.ioError:
    case codes.cannotOpen:
      return new AppError('unavailable', 'The disk of the database reports an I/O error: nothing can be stored until it works again', {
        cause: error,
      });
    case codes.corrupt:
    case codes.notADatabase:
      return new AppError('unavailable', 'The database is damaged: stop the daemon and restore a backup with "gatehouse restore"', { cause: error });
    default:
      return error;
  }
}
