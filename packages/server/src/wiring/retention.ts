import { oldestCall, pruneCalls } from '../features/access/budgets/usage/past-store.ts';
import { oldestPart } from '../features/channels/delivery/store.ts';
import { oldestMessage, pruneMessages } from '../features/channels/messages/store.ts';
import {
  oldestArchive,
  oldestReasoning,
  oldestRunConversation,
  pruneArchives,
  pruneReasoning,
} from '../features/conversations/sessions/changes/retention-store.ts';
import type { Recordings } from '../features/environment/browser/recording/recordings.ts';
import { oldestTurn, pruneTurns } from '../features/conversations/turns/store.ts';
import { oldestAudit, pruneAudit } from '../features/operations/observability/audit-store.ts';
import type { KeptRecords } from '../features/operations/retention/api.ts';
import { oldestTrace, pruneTraces } from '../features/operations/traces/prune-store.ts';
import type { RetentionConfig } from '../features/operations/retention/config.ts';
import { createRetention } from '../features/operations/retention/retention.ts';
import { idBefore, timeOf } from '../kernel/ids.ts';
import type { Live } from '../kernel/config/live.ts';
import type { Db } from '../kernel/db/db.ts';
import type { Lanes } from '../kernel/lane.ts';
import { findOpenTraces } from '../transactions/open-traces.ts';
import { findEndedConversations, pruneConversation } from '../transactions/prune-conversation.ts';
import { pruneChannelSends } from '../transactions/channel-sends.ts';
import type { Assembly } from './assembly.ts';

export interface RetentionWiring {
  readonly lanes: Pick<Lanes, 'acquire' | 'of'>;
  readonly turns: () => { readonly running: number };
  /** Called when a conversation was deleted. */
  readonly cleared: (ref: string) => void;
  readonly browserRecordings: Pick<Recordings, 'all' | 'remove'>;
  /** Ends messages to chats that are too old to be sent. */
  readonly expireSends?: (limit: number) => Promise<void>;
}

/** Wires the deletion of old records. */
export function wireRetention({ building, core, live, db }: Assembly, { turns, ...deps }: RetentionWiring) {
  const config = live(({ retention, observability }) => ({ ...retention, traceDays: observability.persistence.retentionDays }));
  return building.use(createRetention({ ...core('retention'), kept: keptRecords({ db, config, ...deps }), isBusy: () => turns().running > 0 }));
}

type KeptDeps = Omit<RetentionWiring, 'turns'> & {
  readonly db: Pick<Db, 'read' | 'write' | 'telemetry'>;
  readonly config: Pick<Live<RetentionConfig & { readonly traceDays: number }>, 'current'>;
};

/** Messages of chat platforms are listed for as long, both ways. */
const channelDays = 30;

/** Returns what is kept how long, and the operations that delete it. */
export function keptRecords({ db, config, ...deps }: KeptDeps): readonly KeptRecords[] {
  return [
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
      name: 'reasoning',
      days: () => config.current.reasoningDays,
      prune: (due) => db.write(pruneReasoning, due),
      oldest: () => db.read(oldestReasoning, undefined),
    },
    {
      name: 'traces',
      days: () => config.current.traceDays,
      prune: async (due) => db.telemetry(pruneTraces, { ...due, most: config.current.maxTraces, open: await db.read(findOpenTraces, undefined) }),
      oldest: () => db.read(oldestTrace, undefined),
    },
    {
      name: 'channelMessages',
      days: () => channelDays,
      prune: (due) => db.write(pruneMessages, due),
      oldest: () => db.read(oldestMessage, undefined),
    },
    {
      name: 'channelDeliveries',
      days: () => channelDays,
      async prune(due) {
        await deps.expireSends?.(due.limit);
        return db.write(pruneChannelSends, due);
      },
      oldest: () => db.read(oldestPart, undefined),
    },
    {
      name: 'browserRecordings',
      days: () => config.current.browserRecordingDays,
      async prune({ beforeMs, limit }) {
        const due = (await deps.browserRecordings.all()).filter(({ id }) => id < idBefore('rec', beforeMs)).slice(0, limit);
        for (const { agentId, id } of due) await deps.browserRecordings.remove(agentId, id);
        return due.length;
      },
      async oldest() {
        const [oldest] = await deps.browserRecordings.all();
        return oldest === undefined ? undefined : timeOf(oldest.id);
      },
    },
    {
      name: 'subAgentConversations',
      days: () => config.current.subAgentConversationDays,
      prune: pruneConversations({ db, ...deps }),
      oldest: () => db.read(oldestRunConversation, undefined),
    },
  ];
}

/** Changes of conversations take no slot of an agent. */
const maintenance = { group: 'maintenance', groupLimit: 16 };

/** Deletes conversations of sub-agents one by one, each in its lane. */
function pruneConversations({ db, lanes, cleared }: Omit<KeptDeps, 'config'>): KeptRecords['prune'] {
  return async ({ beforeMs, limit }, signal) => {
    let deleted = 0;
    for (const { ref, principalId } of await db.read(findEndedConversations, { beforeMs, limit })) {
      if (signal.aborted) return deleted;
      // A turn that runs uses it: the next run checks again.
      if (lanes.of(ref).running) continue;
      using _lease = await lanes.acquire({ ...maintenance, key: ref, principalId, signal });
      if (!(await db.write(pruneConversation, { ref, beforeMs }))) continue;
      cleared(ref);
      deleted += 1;
    }
    return deleted;
  };
}
