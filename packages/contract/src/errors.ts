/**
 * The closed catalogue of errors. Each failure that leaves the process has one of these codes; a transport turns it
 * into its own shape: a JSON-RPC number (json-rpc.md §7), an HTTP status, or the `/v1` error type (http-gateway.md §7).
 */
export interface ErrorEntry {
  /** JSON-RPC error number. */
  readonly rpc: number;
  /** HTTP status. */
  readonly http: number;
  /** `error.type` on `/v1` routes: by the table of http-gateway.md §7, where every status not listed is `server_error`. */
  readonly v1: 'invalid_request_error' | 'authentication_error' | 'permission_error' | 'not_found_error' | 'rate_limit_error' | 'server_error';
  /** True when the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** What it means, for the reference document. */
  readonly text: string;
}

export const errorCatalogue = {
  parse_error: { rpc: -32700, http: 400, v1: 'invalid_request_error', retryable: false, text: 'The body or frame is not valid JSON.' },
  invalid_envelope: {
    rpc: -32600,
    http: 400,
    v1: 'invalid_request_error',
    retryable: false,
    text: 'The JSON-RPC envelope is malformed, or a batch is empty or too long.',
  },
  method_not_found: { rpc: -32601, http: 404, v1: 'not_found_error', retryable: false, text: 'No method of this name is registered.' },
  invalid_params: {
    rpc: -32602,
    http: 400,
    v1: 'invalid_request_error',
    retryable: false,
    text: 'A parameter or body field is missing, unknown or has a wrong value; `data.issues` names each.',
  },
  insufficient_scope: {
    rpc: -32603,
    http: 403,
    v1: 'permission_error',
    retryable: false,
    text: 'The token lacks the scope that the method or route requires.',
  },
  internal: {
    rpc: -32603,
    http: 500,
    v1: 'server_error',
    retryable: false,
    text: 'A fault of the server; details are in its log under the request id.',
  },
  unauthenticated: {
    rpc: -32603,
    http: 401,
    v1: 'authentication_error',
    retryable: false,
    text: 'The bearer token is missing, unknown, expired or revoked.',
  },
  rate_limited: {
    rpc: -32000,
    http: 429,
    v1: 'rate_limit_error',
    retryable: true,
    text: 'Too many requests, or a queue is full; `data.retryAfterMs` and `Retry-After` say when to try again.',
  },
  not_found: {
    rpc: -32001,
    http: 404,
    v1: 'not_found_error',
    retryable: false,
    text: 'The named thing does not exist, or is not visible to the caller.',
  },
  conflict: { rpc: -32002, http: 409, v1: 'server_error', retryable: false, text: 'The thing exists already, or changed in between.' },
  precondition_failed: { rpc: -32003, http: 409, v1: 'server_error', retryable: false, text: 'The state of the thing does not allow the call.' },
  denied: { rpc: -32004, http: 403, v1: 'permission_error', retryable: false, text: 'Policy refuses the call for this caller.' },
  timeout: { rpc: -32005, http: 504, v1: 'server_error', retryable: true, text: 'The work did not finish before its deadline.' },
  unavailable: {
    rpc: -32006,
    http: 503,
    v1: 'server_error',
    retryable: true,
    text: 'The server is starting, draining or overloaded, or something it depends on does not answer.',
  },
  cancelled: { rpc: -32007, http: 499, v1: 'server_error', retryable: false, text: 'The caller left or the work was aborted.' },
  payload_too_large: { rpc: -32600, http: 413, v1: 'server_error', retryable: false, text: 'The body or frame exceeds the size limit.' },
  unsupported_media_type: {
    rpc: -32600,
    http: 415,
    v1: 'server_error',
    retryable: false,
    text: 'The content type or encoding of the body is not accepted.',
  },
  method_not_allowed: {
    rpc: -32600,
    http: 405,
    v1: 'server_error',
    retryable: false,
    text: 'The path exists, but not for this HTTP method; the `Allow` header lists the accepted ones.',
  },
  forbidden_origin: {
    rpc: -32600,
    http: 403,
    v1: 'permission_error',
    retryable: false,
    text: 'The `Host` or `Origin` of the request is not accepted by this server.',
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

/** One wrong value: `path` with dots, `message` says what was expected. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}
