import { oldestCall, pruneCalls } from '../features/access/budgets/usage/past-store.ts';
import { oldestArchive, oldestRunConversation, pruneArchives } from '../features/conversations/sessions/changes/retention-store.ts';
import { oldestTurn, pruneTurns } from '../features/conversations/turns/store.ts';
import { oldestAudit, pruneAudit } from '../features/operations/observability/audit-store.ts';
import type { KeptRecords } from '../features/operations/retention/api.ts';
import { oldestTrace, pruneTraces } from '../features/operations/traces/prune-store.ts';
import { createRetention } from '../features/operations/retention/retention.ts';
import type { Lanes } from '../kernel/lane.ts';
import { findOpenTraces } from '../transactions/open-traces.ts';
import { findEndedConversations, pruneConversation } from '../transactions/prune-conversation.ts';
import type { Assembly } from './assembly.ts';

export interface RetentionWiring {
  readonly lanes: Pick<Lanes, 'acquire' | 'of'>;
  readonly turns: () => { readonly running: number };
  /** Called when a conversation was deleted. */
  readonly cleared: (ref: string) => void;
}

/** Changes of conversations take no slot of an agent. */
const maintenance = { group: 'maintenance', groupLimit: 16 };

/** Wires the deletion of old records: what is kept how long, and by which operations it is deleted. */
export function wireRetention({ building, core, live, db }: Assembly, { lanes, turns, cleared }: RetentionWiring) {
  const config = live((whole) => whole.retention);
  const persistence = live((whole) => whole.observability.persistence);

  async function pruneConversations(
    { beforeMs, limit }: { readonly beforeMs: number; readonly limit: number },
    signal: AbortSignal,
  ): Promise<number> {
    let deleted = 0;
    // Each in its lane, like any change of a conversation.
    const found = await db.read(findEndedConversations, { beforeMs, limit });
    for (const { ref, principalId } of found) {
      if (signal.aborted) return deleted;
      // A turn that runs uses it: the next run looks again.
      if (lanes.of(ref).running) continue;
      using _lease = await lanes.acquire({ ...maintenance, key: ref, principalId, signal });
      if (!(await db.write(pruneConversation, { ref, beforeMs }))) continue;
      cleared(ref);
      deleted += 1;
    }
    return deleted;
  }

  const kept: readonly KeptRecords[] = [
    {
      name: 'modelCalls',
      days: () => config.current.turnDays,
      prune: (due) => db.write(pruneCalls, due),
      oldest: () => db.read(oldestCall, undefined),
    },
    { name: 'turns', days: () => config.current.turnDays, prune: (due) => db.write(pruneTurns, due), oldest: () => db.read(oldestTurn, undefined) },
    { name: 'audit', days: () => config.current.auditDays, prune: (due) => db.write(pruneAudit, due), oldest: () => db.read(oldestAudit, undefined) },
    {
      name: 'archives',
      days: () => config.current.archiveDays,
      prune: (due) => db.write(pruneArchives, due),
      oldest: () => db.read(oldestArchive, undefined),
    },
    {
      name: 'traces',
      days: () => persistence.current.retentionDays,
      prune: async (due) => db.telemetry(pruneTraces, { ...due, most: config.current.maxTraces, open: await db.read(findOpenTraces, undefined) }),
      oldest: () => db.read(oldestTrace, undefined),
    },
    {
      name: 'subAgentConversations',
      days: () => config.current.subAgentConversationDays,
      prune: pruneConversations,
      oldest: () => db.read(oldestRunConversation, undefined),
    },
  ];
  return building.use(createRetention({ ...core('retention'), kept, isBusy: () => turns().running > 0 }));
}
