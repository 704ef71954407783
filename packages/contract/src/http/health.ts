import * as z from 'zod';
import { once } from '../once.ts';

export const HealthCheck = z.strictObject({ status: z.enum(['ok', 'degraded', 'failed']), detail: z.string().optional() });

/** Answer of `/health` and `/api/health`; no secrets, no ids. With `?ready`: 503 until ready, while draining, without the lease of a shared database, and of a standby. */
export const Health = once(() =>
  z
    .strictObject({
      status: z.enum(['ok', 'degraded', 'starting', 'draining', 'standby']),
      role: z.enum(['active', 'standby']).optional().describe('Present when daemons share a database.'),
      version: z.string(),
      uptimeMs: z.int().min(0),
      checks: z.record(z.string(), HealthCheck),
    })
    .meta({ id: 'Health' }),
);
export type Health = z.output<ReturnType<typeof Health>>;

/** Error body of every route outside `/v1` and `/rpc`. */
export const HttpError = once(() => z.strictObject({ error: z.string(), code: z.string(), requestId: z.string() }).meta({ id: 'HttpError' }));
