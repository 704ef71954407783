import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
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
import type { ConversationRow } from '../store.ts';
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

/** A fork of a conversation of another caller or of the caller's own. */
export interface ForkRequest {
  readonly source: Pick<ConversationRow, 'ref' | 'agentId' | 'sessionKey'>;
  /** Position of the last copied message; null copies all. */
  readonly toSeq: number | null;
  readonly key?: SessionKeyParts | undefined;
  readonly agentId?: string | undefined;
  /** Made by a replay. */
  readonly synthetic?: true;
}

/** Compacts and forks conversations. */
export function createChanging(deps: ChangingDeps): {
  readonly methods: ChangingMethods;
  readonly fork: (request: ForkRequest, call: CallContext) => Promise<ConversationRow>;
} {
  const { db, bus, clock, addressing, alone } = deps;

  async function fork({ source, toSeq, key = forkKeyOf(source.sessionKey), agentId, synthetic }: ForkRequest, call: CallContext) {
    const principalId = ownerOf(call);
    const ref = conversationRef(agentId ?? source.agentId, principalId, key);
    return alone(ref, call, async () => {
      const atMs = clock.now();
      const audit = auditRow(call, atMs, {
        actionType: 'session.fork',
        classification: 'mutate',
        target: ref,
        metadata: { forkedFrom: source.ref },
      });
      const row = await db.write(forkConversation, {
        sourceRef: source.ref,
        toSeq,
        ref,
        principalId,
        sessionKey: printSessionKey(key),
        agentId,
        synthetic,
        atMs,
        audit,
      });
      announceAudit(bus, audit);
      deps.indexer.notice();
      bus.emit('session:created', { ...identityOf(row), timestamp: atMs }, principalId);
      return row;
    });
  }

  const methods: ChangingMethods = {
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
      const row = await fork({ source, toSeq: seq ?? null, key: forkKey === undefined ? undefined : parseSessionKey(forkKey) }, call);
      return { ...identityOf(row), forkedFrom: source.ref, messageCount: row.messageCount };
    },
  };

  return { methods, fork };
}

/** Returns the key of a fork: that of its source with another channel, so that the kind is the same. */
function forkKeyOf(printed: string): SessionKeyParts {
  const key = parseSessionKey(printed);
  return { ...key, channelId: `${key.channelId.slice(0, 200).toWellFormed()}~${newId('fk').slice(-12)}` };
}
