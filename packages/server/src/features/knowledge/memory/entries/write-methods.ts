import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { MemoryApi } from '../api.ts';
import { clearCachedVectors } from '../embeddings/embedding-cache-store.ts';
import type { MemoryEmbedder } from '../embeddings/embedder.ts';
import type { MemoryMethods } from '../methods.ts';
import { deleteMemories, flushMemories, lastMemory } from './browse-store.ts';
import { reachableAgent, reachOf, refuseAgents } from './reach.ts';
import { everybody } from './store.ts';

interface WriteDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly api: Pick<MemoryApi, 'store'>;
  readonly embedder: MemoryEmbedder | undefined;
}

const tenantId = 'default';

/** Creates the methods by which operators store and delete memories. */
export function createWriteMethods({
  db,
  bus,
  clock,
  agents,
  api,
  embedder,
}: WriteDeps): Pick<MemoryMethods, `memory.${'store' | 'delete' | 'flush'}`> {
  return {
    'memory.store': async ({ content, agentId = agents.defaultId, memoryType, trustLevel, tags, expiresAt, pinned }, call) => {
      refuseAgents('memory.store', call);
      if (expiresAt !== undefined && expiresAt <= clock.now())
        throw new AppError('invalid_params', 'expiresAt: expected a time in the future', { param: 'expiresAt' });
      const stored = await api.store(
        {
          agentId: reachableAgent(agents, agentId, call),
          principalId: everybody,
          content,
          memoryType,
          trustLevel,
          source: { who: 'operator', channel: 'rpc' },
          tags: [...tags, 'operator-stored'],
          pinned,
          ...(expiresAt !== undefined && { expiresAtMs: expiresAt }),
        },
        call,
      );
      return { stored: true, ...stored };
    },

    'memory.delete': async ({ ids }, call) => {
      refuseAgents('memory.delete', call);
      const unique = [...new Set(ids)];
      const audit = auditRow(call, clock.now(), { actionType: 'memory.delete', classification: 'destructive' });
      const done = await db.write(deleteMemories, { ids: unique, reach: reachOf(agents, undefined, call), audit });
      announceAudit(bus, done.audit);
      return { deleted: done.deleted, failed: unique.length - done.deleted, total: unique.length };
    },

    'memory.flush': async ({ agentId }, call) => {
      refuseAgents('memory.flush', call);
      const { agentIds } = reachOf(agents, agentId, call);
      // Entries stored meanwhile stay.
      const lastSeq = await db.read(lastMemory, {});
      let entriesRemoved = 0;
      for (let more = true; more;) {
        const audit = auditRow(call, clock.now(), { actionType: 'memory.flush', classification: 'destructive', target: agentId ?? everybody });
        const step = await db.write(flushMemories, { agentIds, lastSeq, audit });
        announceAudit(bus, step.audit);
        entriesRemoved += step.removed;
        more = step.more;
      }
      embedder?.cache.clear();
      await db.telemetry(clearCachedVectors, {});
      return { flushed: true, entriesRemoved, scope: { tenantId, agentId: agentId ?? null } };
    },
  };
}
