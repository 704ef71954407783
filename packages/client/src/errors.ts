import type { ErrorCode, Issue } from '@gatehouse/contract';

/** Error codes including those of the client itself, for failures that the server did not report. */
export type ClientErrorCode = ErrorCode | 'connection_failed' | 'client_timeout' | 'bad_reply';

export interface ErrorDetails {
  readonly code: ClientErrorCode;
  readonly message: string;
  readonly rpcCode?: number | undefined;
  readonly httpStatus?: number | undefined;
  readonly issues?: readonly Issue[] | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly requestId?: string | undefined;
  readonly cause?: unknown;
}

/** Base class of all failures of a call. `code` is stable; the subclass indicates how to handle it. */
export class GatehouseError extends Error {
  override readonly name: string = 'GatehouseError';
  readonly code: ClientErrorCode;
  readonly rpcCode: number | undefined;
  readonly httpStatus: number | undefined;
  /** The wrong parameters; empty unless the code is `invalid_params`. */
  readonly issues: readonly Issue[];
  readonly retryAfterMs: number | undefined;
  /** Finds the request in the log of the server. */
  readonly requestId: string | undefined;

  constructor(details: ErrorDetails) {
    super(details.message, { cause: details.cause });
    this.code = details.code;
    this.rpcCode = details.rpcCode;
    this.httpStatus = details.httpStatus;
    this.issues = details.issues ?? [];
    this.retryAfterMs = details.retryAfterMs;
    this.requestId = details.requestId;
  }
}

/** The token is missing, unknown, expired or revoked. */
export class AuthenticationError extends GatehouseError {
  override readonly name = 'AuthenticationError';
}
/** The token lacks a scope, or policy refuses the call. */
export class PermissionError extends GatehouseError {
  override readonly name = 'PermissionError';
}
export class NotFoundError extends GatehouseError {
  override readonly name = 'NotFoundError';
}
/** The server has no method of this name. */
export class MethodNotFoundError extends GatehouseError {
  override readonly name = 'MethodNotFoundError';
}
/** A parameter or body field is wrong; `issues` names each. */
export class InvalidParamsError extends GatehouseError {
  override readonly name = 'InvalidParamsError';
}
/** Too many requests; `retryAfterMs` says when to try again. */
export class RateLimitError extends GatehouseError {
  override readonly name = 'RateLimitError';
}
/** The state of the resource does not allow the call. */
export class ConflictError extends GatehouseError {
  override readonly name = 'ConflictError';
}
/** The server is starting, draining or overloaded. */
export class UnavailableError extends GatehouseError {
  override readonly name = 'UnavailableError';
}
/** The deadline passed, on the server or in the client. */
export class TimeoutError extends GatehouseError {
  override readonly name = 'TimeoutError';
}
/** The server aborted the work. Aborting through a signal throws the reason of the signal instead. */
export class CancelledError extends GatehouseError {
  override readonly name = 'CancelledError';
}
/** An internal error of the server, or an invalid reply. */
export class ServerError extends GatehouseError {
  override readonly name = 'ServerError';
}
/** The connection failed or broke. A call with side effects may or may not have taken effect. */
export class ConnectionError extends GatehouseError {
  override readonly name = 'ConnectionError';
}

const classes: Record<ClientErrorCode, new (details: ErrorDetails) => GatehouseError> = {
  parse_error: GatehouseError,
  invalid_envelope: GatehouseError,
  method_not_found: MethodNotFoundError,
  invalid_params: InvalidParamsError,
  insufficient_scope: PermissionError,
  internal: ServerError,
  unauthenticated: AuthenticationError,
  rate_limited: RateLimitError,
  not_found: NotFoundError,
  conflict: ConflictError,
  precondition_failed: ConflictError,
  denied: PermissionError,
  timeout: TimeoutError,
  unavailable: UnavailableError,
  cancelled: CancelledError,
  payload_too_large: InvalidParamsError,
  unsupported_media_type: GatehouseError,
  method_not_allowed: GatehouseError,
  forbidden_origin: PermissionError,
  connection_failed: ConnectionError,
  client_timeout: TimeoutError,
  bad_reply: ServerError,
};

/** Creates an error of the class that matches the code. */
export function createError(details: ErrorDetails): GatehouseError {
  return new classes[details.code](details);
}

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(classes, code) && !['connection_failed', 'client_timeout', 'bad_reply'].includes(code);
}
