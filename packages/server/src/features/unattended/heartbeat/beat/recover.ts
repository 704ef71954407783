import type { Db } from '../../../../kernel/db/db.ts';
import type { Coalescer } from '../timing/coalescer.ts';
import type { createBeats } from './beat.ts';
import type { HeartbeatOperations } from './operations.ts';
import { BeatResult } from './result.ts';

/** Finishes beats whose work a dead daemon completed without storing their end. */
export async function recoverBeats(deps: {
  readonly db: Db;
  readonly recover: HeartbeatOperations['recover'];
  readonly coalescer: Pick<Coalescer, 'adopt'>;
  readonly finish: ReturnType<typeof createBeats>['finish'];
}): Promise<void> {
  for (const { beat, work } of await deps.db.read(deps.recover, {})) {
    const { workId: id, agentId, correlationId, lane, reason, startedAtMs, eventCount } = beat;
    const occurrence = { correlationId, agentId, lane, reason, startedAtMs };
    deps.coalescer.adopt(occurrence);
    // Its turn resumes on its own.
    if (work !== undefined && (work.state === 'accepted' || work.state === 'running')) continue;
    const parsed = BeatResult().safeParse(work?.result);
    const result = parsed.data ?? { kind: 'failed' as const, errorKind: work?.errorKind ?? 'lost', spoke: true };
    await deps.finish({ id, agentId, occurrence, eventCount }, result, { isUnknown: work?.state !== 'done' && work?.state !== 'failed' });
  }
}
