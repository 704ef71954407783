import type { MessagesError, RouteFamily, RpcError, RpcReply, V1Error } from '@gatehouse/contract';
import type * as z from 'zod';
import { type AppError, toAppError } from '../kernel/app-error.ts';

export type RpcId = RpcReply['id'];

/** Returns the body of a failure on `/v1` (http-gateway.md §2.8). */
function v1ErrorBody(error: AppError): z.output<ReturnType<typeof V1Error>> {
  return { error: { message: error.message, type: error.entry.v1, param: error.details.param ?? null, code: null } };
}

/**
 * The only place where a failure becomes a JSON-RPC error object. Anything but an `AppError` is sent as `Internal error` with
 * the request id, under which the log has the rest (decisions §5).
 */
export function toRpcError(failure: unknown, requestId: string): RpcError {
  const error = toAppError(failure);
  const { issues, retryAfterMs, required } = error.details;
  return {
    code: error.entry.rpc,
    message: error.message,
    data: {
      code: error.code,
      ...(issues !== undefined && { issues: [...issues] }),
      ...(retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }),
      ...(required !== undefined && { required }),
      ...(error.code === 'internal' && { requestId }),
    },
  };
}

export function rpcFailure(failure: unknown, requestId: string, id: RpcId = null): RpcReply {
  return { jsonrpc: '2.0', error: toRpcError(failure, requestId), id };
}

/** Returns the body of a failure in the format of the path's route family. */
export function errorBody(family: RouteFamily, error: AppError, requestId: string): object {
  if (family === 'v1') return v1ErrorBody(error);
  if (family === 'messages') return { type: 'error', ...v1ErrorBody(error), request_id: requestId } satisfies MessagesError;
  if (family === 'rpc') return rpcFailure(error, requestId);
  return { error: error.message, code: error.code, requestId };
}

/** Returns whole seconds for `Retry-After`; undefined when the header makes no sense. */
export function retryAfterSeconds(error: AppError): number | undefined {
  const { retryAfterMs } = error.details;
  if (retryAfterMs !== undefined) return Math.max(1, Math.ceil(retryAfterMs / 1000));
  return error.entry.http === 429 || error.entry.http === 503 ? 1 : undefined;
}

/** Returns which format errors below a path have, even where there is no route. */
export function familyOf(path: string): RouteFamily {
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return 'messages';
  if (path === '/v1' || path.startsWith('/v1/')) return 'v1';
  return path === '/rpc' || path === '/ws' || path === '/mcp' ? 'rpc' : 'api';
}
