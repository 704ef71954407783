import * as z from 'zod';

export const WebhookDeliveryId = z.string().regex(/^wd_[0-9a-f-]{36}$/, 'expected the id of a delivery, wd_ followed by a UUID');

export const webhookDeliveryStates = ['accepted', 'running', 'done', 'failed', 'aborted', 'unknown', 'ignored'] as const;
