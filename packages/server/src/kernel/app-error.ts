// The whole contract would bring zod into the storage threads.
import { type ErrorCode, errorCatalogue, type Issue } from '@gatehouse/contract/errors';
import { isOutOfDescriptors } from './descriptors.ts';
import { isDiskFull } from './disk-full.ts';
import { isMissingPart, missingPart } from './missing-part.ts';

export interface ErrorDetails {
  /** The offending parameter, for `param` of the `/v1` body. */
  readonly param?: string;
  readonly issues?: readonly Issue[];
  readonly retryAfterMs?: number;
  /** Why a request of `/v1` was refused, for the header `x-gatehouse-error`. */
  readonly reason?: 'context_length_exceeded' | 'upstream_rejected' | 'budget_exceeded';
  /** The scope that was missing. */
  readonly required?: string;
  readonly cause?: unknown;
}

/** The only error whose own message may reach a client; everything else is reported as `internal`. */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.details = details;
  }

  get entry() {
    return errorCatalogue[this.code];
  }
}

/** Returns the caller's own error, `unavailable` when the machine or installation is at fault, or an `internal` error with a fixed message. */
export function toAppError(error: unknown): AppError {
  // A thread that failed to start would otherwise be blamed on too large an input.
  if (isMissingPart(error)) return new AppError('unavailable', missingPart, { cause: error });
  if (error instanceof AppError) return error;
  if (isDiskFull(error))
    return new AppError('unavailable', 'The disk is full, by bytes or by number of files: nothing can be stored until space is freed', {
      cause: error,
    });
  if (isOutOfDescriptors(error)) return new AppError('unavailable', 'The server has too many files and sockets open', { cause: error });
  return new AppError('internal', 'Internal error', { cause: error });
}
