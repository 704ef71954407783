import type { Approvals } from '../features/access/approvals/approvals.ts';
import type { KeptLanes } from '../features/conversations/turns/lanes/kept-lanes.ts';
import { readWaitingTurns, resumeBehind } from '../transactions/interrupted-turns.ts';
import type { Assembly } from './assembly.ts';

/** Keeps the lanes of turns that waited for an approval when their daemon stopped, and resumes those whose approval was decided since. */
export async function restoreWaitingTurns(
  { db, clock }: Pick<Assembly, 'db' | 'clock'>,
  keptLanes: Pick<KeptLanes, 'keep' | 'free' | 'knows'>,
  approvals: Pick<Approvals, 'suspended'>,
): Promise<void> {
  const waiting = (await db.read(readWaitingTurns, {})).filter(({ workId }) => !keptLanes.knows(workId));
  for (const { isSuspended, ...turn } of waiting) {
    keptLanes.keep(turn);
    if (isSuspended) keptLanes.free(turn.workId);
  }
  await db.write(resumeBehind, { atMs: clock.now() });
  // Approvals decided while nobody was there to resume their turns.
  await Promise.all(waiting.map(({ approvalId }) => approvals.suspended(approvalId)));
}
