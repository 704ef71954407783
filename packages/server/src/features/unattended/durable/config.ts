import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** Section `durable`. */
export const DurableConfig = once(() =>
  z.strictObject({
    maxWaitMs: z
      .int()
      .min(1000)
      .max(30 * 86_400_000)
      .default(86_400_000)
      .describe(
        'How long accepted work (webhooks, messages, jobs, announcements, sub-agents) waits while its model provider fails, rejects requests or cools down, before it fails. Time while the daemon is stopped does not count.',
      ),
  }),
);
export type DurableConfig = z.output<ReturnType<typeof DurableConfig>>;
