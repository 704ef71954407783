import * as z from 'zod';
import { liveWeek } from './week.ts';

// A process that lives one virtual week after the other, in sources into which a fault may be built.
const Ask = z.object({ seed: z.number(), days: z.number() });

process.on('message', (message) => {
  const { seed, days } = Ask.parse(message);
  void liveWeek(seed, days).then(
    (report) => process.send?.(report),
    (error: unknown) => process.send?.({ seed, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.send?.({ ready: true });
