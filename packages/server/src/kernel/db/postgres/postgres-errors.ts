import { AppError } from '../../app-error.ts';

/** How long callers are asked to wait while the server is away: reconnecting takes less. */
export const retryAfterMs = 2_000;

/** SQLSTATE of an error that the server sent; undefined for one of the connection or of this program. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined;
}

/** Two transactions met on the same rows: running this one again is the remedy. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error);
  // Serialization failure, deadlock, and a lock that was not available in time.
  return state === '40001' || state === '40P01' || state === '55P03';
}

/** The connection is of no use any more, or never was: the server stops, starts, changed its role, or cannot be reached. */
export function isConnectionFailure(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return isSocketFailure(error);
  // Shutdown, crash, start, class 08, an idle session or transaction that the server ended, a server that became a standby.
  return /^(57P0[1-5]|08...|25P0[34]|25006)$/.test(state);
}

/** The server does not know a prepared statement (a pooler replaced the session) or its plan does not fit the changed schema. */
export function isStaleStatement(error: unknown): boolean {
  const state = sqlState(error);
  return state === '26000' || (state === '0A000' && error instanceof Error && error.message.includes('cached plan'));
}

export function isDiskFailure(error: unknown): boolean {
  const state = sqlState(error);
  return state === '53100' || state === '58030';
}

/** Failures that do not depend on time, such as a wrong password: trying again does not help. */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error);
  return state !== undefined && /^(28...|3D000|42501|3F000)$/.test(state);
}

/** The certificate of the server is signed by nobody whom this machine, or the configuration, knows. */
export function isUnknownAuthority(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(UNABLE_TO_(VERIFY|GET)_|SELF_SIGNED_|DEPTH_ZERO_)/.test(String(error.code));
}

function isSocketFailure(error: unknown): boolean {
  if (error instanceof LostConnection) return true;
  if (!(error instanceof Error)) return false;
  return 'syscall' in error || /^Connection terminated|not queryable|timeout expired|SSL connection/.test(error.message);
}

/** The connection ended; what was sent last may or may not have been done. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection';
}

/** The server stopped answering on a connection, at `sinceMs` of the monotonic clock, without ending it. */
export class SilentServer extends LostConnection {
  readonly sinceMs: number;
  constructor(sinceMs: number) {
    super('The database server stopped answering');
    this.sinceMs = sinceMs;
  }
}

export function unreachable(cause?: unknown): AppError {
  return new AppError('unavailable', whyUnreachable(cause), {
    retryAfterMs,
    ...(cause !== undefined && { cause }),
  });
}

function whyUnreachable(cause: unknown): string {
  const state = sqlState(cause) ?? '';
  if (state === '53300')
    return 'The database server has no connection left for this daemon: raise its limit, or that of the role, or lower storage.poolSize';
  if (state.startsWith('28')) return 'The database server refuses the login of this daemon: nothing can be stored or read until it is accepted';
  return 'The database server cannot be reached: nothing can be stored or read until it is back';
}

export function inDoubt(cause: unknown): AppError {
  return new AppError('unavailable', 'The connection to the database ended during a commit; whether the change was kept is not known', {
    retryAfterMs,
    cause,
  });
}

/** Explains to clients what the operator has to repair; other errors pass unchanged. */
export function explainPostgresError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (isConnectionFailure(error)) return unreachable(error);
  if (isConflict(error)) return new AppError('unavailable', 'Other processes kept changing the same rows: try again', { retryAfterMs, cause: error });
  switch (sqlState(error)) {
    case '53100':
      return new AppError('unavailable', 'The disk of the database server is full: nothing can be stored until space is freed', { cause: error });
    case '58030':
      return new AppError('unavailable', 'The disk of the database server reports an I/O error: nothing can be stored until it works again', {
        cause: error,
      });
    case '57014':
      return new AppError('unavailable', 'The database server took too long for a statement', { retryAfterMs, cause: error });
    default:
      return error;
  }
}
