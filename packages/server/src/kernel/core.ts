import type { Clock } from './clock.ts';
import type { Db } from './db/db.ts';
import type { EventBus } from './event-bus.ts';
import type { Log } from './log.ts';
import type { TraceWork } from './work-trace.ts';

/** What most features work with. The log is that of the feature's module. */
export interface Core {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
}
