import * as z from 'zod';
import { liveThroughWrongClock } from './wrong-clock.ts';

// A process that lives through starts with a wrong clock, in sources into which a fault may be built.
const Ask = z.object({ each: z.number(), offDays: z.array(z.number()), minutes: z.number() });

process.on('message', (message) => {
  void liveThroughWrongClock(Ask.parse(message)).then(
    (report) => process.send?.(report),
    (error: unknown) => process.send?.({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.send?.({ ready: true });
