import type { ErrorCode, Issue } from '@gatehouse/contract';
import { createError, type ErrorDetails, type GatehouseError, isErrorCode } from './errors.ts';

export interface JsonRecord {
  readonly [key: string]: unknown;
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Metadata of a reply. */
export interface ReplyContext {
  readonly httpStatus?: number | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

const codesByStatus: Record<number, ErrorCode> = {
  400: 'invalid_params',
  401: 'unauthenticated',
  403: 'insufficient_scope',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  499: 'cancelled',
  502: 'unavailable',
  503: 'unavailable',
  504: 'timeout',
};

const codesByType: Record<string, ErrorCode> = {
  invalid_request_error: 'invalid_params',
  authentication_error: 'unauthenticated',
  permission_error: 'insufficient_scope',
  not_found_error: 'not_found',
  rate_limit_error: 'rate_limited',
  server_error: 'internal',
};

const codesByNumber: Record<number, ErrorCode> = {
  [-32700]: 'parse_error',
  [-32600]: 'invalid_envelope',
  [-32601]: 'method_not_found',
  [-32602]: 'invalid_params',
  [-32603]: 'internal',
  [-32000]: 'rate_limited',
  [-32001]: 'not_found',
  [-32002]: 'conflict',
  [-32003]: 'precondition_failed',
  [-32004]: 'denied',
  [-32005]: 'timeout',
  [-32006]: 'unavailable',
  [-32007]: 'cancelled',
};

/** Converts the `error` member of a JSON-RPC reply; `data.code` takes precedence over the number, which several codes share. */
export function errorFromRpc(error: JsonRecord, context: ReplyContext = {}): GatehouseError {
  const data = isRecord(error['data']) ? error['data'] : {};
  const rpcCode = typeof error['code'] === 'number' ? error['code'] : undefined;
  return createError({
    ...context,
    ...dataDetails(data, context),
    code: isErrorCode(data['code']) ? data['code'] : ((rpcCode === undefined ? undefined : codesByNumber[rpcCode]) ?? 'internal'),
    message: text(error['message']) ?? 'The call failed.',
    rpcCode,
  });
}

/** Converts a failed HTTP reply of any route into an error. */
export function errorFromHttp(body: unknown, context: ReplyContext & { readonly httpStatus: number }): GatehouseError {
  const status = context.httpStatus;
  // A batch that is refused as a whole has the same error for each of its calls.
  if (Array.isArray(body) && body.length > 0) return errorFromHttp(body[0], context);
  const byStatus = codesByStatus[status] ?? (status >= 500 ? 'internal' : 'invalid_envelope');
  if (isRecord(body) && isRecord(body['error'])) {
    // A JSON-RPC error has a number as its code, a /v1 error has a type.
    return typeof body['error']['code'] === 'number' ? errorFromRpc(body['error'], context) : errorFromV1(body['error'], context);
  }
  return errorFromApi(body, context, { code: byStatus, message: `The server answered with status ${status}.` });
}

/** Converts `{error, code, requestId}`, the body or `error` event of routes other than `/v1` and `/rpc`, into an error. */
export function errorFromApi(
  body: unknown,
  context: ReplyContext,
  otherwise: { readonly code: ErrorCode; readonly message: string },
): GatehouseError {
  const record = isRecord(body) ? body : {};
  return createError({
    ...context,
    ...dataDetails(record, context),
    code: isErrorCode(record['code']) ? record['code'] : otherwise.code,
    message: text(record['error']) ?? otherwise.message,
  });
}

/** Converts the `error` member of a `/v1` body or stream line into an error. */
export function errorFromV1(error: JsonRecord, context: ReplyContext = {}): GatehouseError {
  const param = text(error['param']);
  const message = text(error['message']) ?? 'The request failed.';
  const byStatus = context.httpStatus === undefined || context.httpStatus < 400 ? undefined : codesByStatus[context.httpStatus];
  return createError({
    ...context,
    code: byStatus ?? codesByType[text(error['type']) ?? ''] ?? 'internal',
    message,
    issues: param === undefined ? [] : [{ path: param, message }],
  });
}

function dataDetails(data: JsonRecord, context: ReplyContext): Partial<ErrorDetails> {
  const issues = Array.isArray(data['issues']) ? data['issues'].filter(isIssue) : [];
  return {
    issues,
    retryAfterMs: typeof data['retryAfterMs'] === 'number' ? data['retryAfterMs'] : context.retryAfterMs,
    requestId: text(data['requestId']) ?? context.requestId,
  };
}

function isIssue(value: unknown): value is Issue {
  return isRecord(value) && typeof value['path'] === 'string' && typeof value['message'] === 'string';
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
