import * as z from 'zod';
import { once } from '../once.ts';

/** Body of every failure below `/v1` (http-gateway.md §2.8). */
export const V1Error = once(() =>
  z
    .strictObject({
      error: z.strictObject({
        message: z.string(),
        type: z.enum(['invalid_request_error', 'authentication_error', 'permission_error', 'not_found_error', 'rate_limit_error', 'server_error']),
        param: z.string().nullable(),
        code: z.null(),
      }),
    })
    .meta({ id: 'V1Error' }),
);
export type V1Error = z.output<ReturnType<typeof V1Error>>;
