import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { TraceWork } from '../../../../kernel/work-trace.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { ModelWork } from '../../../access/budgets/api.ts';
import type { MemoryApi } from '../api.ts';

/** What review and consolidation use. */
export interface ReflectDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly work: Pick<ModelWork, 'generate' | 'tierOf'>;
  readonly traceWork: TraceWork;
  readonly search: MemoryApi['search'];
  readonly fence: FenceText;
  /** Called after memories of an agent were stored, so that they are embedded. */
  readonly stored: (agentId: string) => void;
}
