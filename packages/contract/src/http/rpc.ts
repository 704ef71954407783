import * as z from 'zod';
import { once } from '../once.ts';

/** A JSON-RPC 2.0 id: a request without one is a notification and gets no reply. */
export const RpcId = once(() => z.union([z.string(), z.number(), z.null()]));

/** JSON-RPC 2.0 request (json-rpc.md §2.1). */
export const RpcRequest = once(() =>
  z
    .object({
      jsonrpc: z.literal('2.0'),
      method: z.string(),
      params: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]).optional(),
      id: RpcId().optional(),
    })
    .meta({ id: 'RpcRequest' }),
);

/** JSON-RPC 2.0 error object; `data.code` is a code of the error catalogue. */
export const RpcError = once(() =>
  z
    .object({
      code: z.int(),
      message: z.string(),
      data: z
        .object({
          code: z.string(),
          issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
          retryAfterMs: z.int().optional(),
          requestId: z.string().optional(),
          required: z.string().optional(),
        })
        .optional(),
    })
    .meta({ id: 'RpcError' }),
);
export type RpcError = z.output<ReturnType<typeof RpcError>>;

/** JSON-RPC 2.0 reply: `result` or `error`. */
export const RpcReply = once(() =>
  z.object({ jsonrpc: z.literal('2.0'), result: z.unknown().optional(), error: RpcError().optional(), id: RpcId() }).meta({ id: 'RpcReply' }),
);
export type RpcReply = z.output<ReturnType<typeof RpcReply>>;
