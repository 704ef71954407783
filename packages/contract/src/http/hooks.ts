import * as z from 'zod';
import { once } from '../once.ts';

/** Body of the strict webhook route. */
export const WebhookPayload = once(() =>
  z
    .strictObject({
      event: z.string().min(1).max(256).describe('What happened.'),
      source: z.string().min(1).max(256).describe('The sender; mappings may match it.'),
      data: z.record(z.string(), z.unknown()).describe('Whatever belongs to it.'),
      timestamp: z.string().max(64).optional().describe('When it happened, for people; freshness is shown by the header.'),
    })
    .meta({ id: 'WebhookPayload' }),
);

/** The answer to a delivery that was stored; what becomes of it is not part of it (http-gateway.md §4.8). */
export const WebhookReceived = once(() =>
  z.strictObject({ received: z.literal(true), mapping: z.string().describe('Id of the mapping that took it.') }).meta({ id: 'WebhookReceived' }),
);
