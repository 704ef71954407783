import * as z from 'zod';
import { liveYear } from './year-life.ts';

// A process that lives a year, in sources into which a fault may be built.
const Ask = z.object({
  dataDir: z.string(),
  days: z.number(),
  pace: z.object({ turns: z.number(), callsPerTurn: z.number(), events: z.number(), subAgents: z.number() }),
});

process.on('message', (message) => {
  const { dataDir, days, pace } = Ask.parse(message);
  void liveYear(dataDir, days, pace, (progress) => process.send?.({ progress })).then(
    (report) => process.send?.({ report }),
    (error: unknown) => process.send?.({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.send?.({ ready: true });
