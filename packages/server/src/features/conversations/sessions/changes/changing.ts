import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { Compact } from '../api.ts';
import { conversationRef, parseSessionKey, printSessionKey, type SessionKeyParts } from '../conversation.ts';
import type { Indexer } from '../search/indexer.ts';
import type { Addressing } from '../reading/reach.ts';
import { identityOf } from '../reading/view.ts';
import type { Alone } from './alone.ts';
import { forkConversation } from './fork-store.ts';

type ChangingMethods = HandlersOf<`session.${'compact' | 'fork'}`>;

export interface ChangingDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly addressing: Addressing;
  readonly alone: Alone;
  readonly indexer: Pick<Indexer, 'notice'>;
  readonly compact: Compact;
}

/** Compacts and forks conversations. */
export function createChanging(deps: ChangingDeps): ChangingMethods {
  const { db, bus, clock, addressing, alone } = deps;

  return {
    'session.compact': async ({ instructions, ...address }, call) => {
      const row = await addressing.existing(address, call);
      const agent = deps.agents.usable(row.agentId, call);
      return alone(row.ref, call, async () => {
        const done = await deps.compact({ ref: row.ref, agent, principalId: row.principalId, instructions, signal: call.signal });
        return { ...identityOf(row), compacted: done.method !== 'none', ...done };
      });
    },

    'session.fork': async ({ seq, forkKey, ...address }, call) => {
      const source = await addressing.existing(address, call);
      const sourceRef = source.ref;
      const key = forkKey === undefined ? forkKeyOf(source.sessionKey) : parseSessionKey(forkKey);
      const principalId = ownerOf(call);
      const ref = conversationRef(source.agentId, principalId, key);
      return alone(ref, call, async () => {
        const atMs = clock.now();
        const audit = auditRow(call, atMs, {
          actionType: 'session.fork',
          classification: 'mutate',
          target: ref,
          metadata: { forkedFrom: sourceRef },
        });
        const row = await db.write(forkConversation, {
          sourceRef,
          toSeq: seq ?? null,
          ref,
          principalId,
          sessionKey: printSessionKey(key),
          atMs,
          audit,
        });
        announceAudit(bus, audit);
        deps.indexer.notice();
        bus.emit('session:created', { ...identityOf(row), timestamp: atMs }, principalId);
        return { ...identityOf(row), forkedFrom: sourceRef, messageCount: row.messageCount };
      });
    },
  };
}

/** Returns the key of a fork: that of its source with another channel, so that the kind is the same. */
function forkKeyOf(printed: string): SessionKeyParts {
  const key = parseSessionKey(printed);
  return { ...key, channelId: `${key.channelId.slice(0, 200).toWellFormed()}~${newId('fk').slice(-12)}` };
}
