import * as z from 'zod';
import { liveThroughOutage } from './outage.ts';

// A process that lives through one outage, in sources into which a fault may be built.
const Ask = z.object({
  webhooks: z.number(),
  messages: z.number(),
  oneShots: z.number(),
  recurring: z.number(),
  minutes: z.number(),
  patienceMin: z.number(),
});

process.on('message', (message) => {
  void liveThroughOutage(Ask.parse(message)).then(
    (report) => process.send?.(report),
    (error: unknown) => process.send?.({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.send?.({ ready: true });
