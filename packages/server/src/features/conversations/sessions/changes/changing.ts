import type { EventPayload } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { ContextApi } from '../../context/api.ts';
import type { ConversationTarget, Erased, Erasure, SessionReset } from '../api.ts';
import { conversationRef, parseSessionKey, printSessionKey, type SessionKeyParts } from '../conversation.ts';
import { forkConversation } from './fork-store.ts';
import type { Indexer } from '../search/indexer.ts';
import type { Addressing } from '../reading/reach.ts';
import { dueReset, resetRuleOf } from './reset-policy.ts';
import { type Archival, type ConversationRow, findConversation } from '../store.ts';
import { identityOf } from '../reading/view.ts';

type ChangingMethods = HandlersOf<`session.${'delete' | 'reset' | 'reset_conversation' | 'compact' | 'fork'}`>;

export interface ChangingDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly addressing: Addressing;
  readonly indexer: Pick<Indexer, 'notice'>;
  readonly deleteConversation: Operation<Archival, ConversationRow>;
  readonly resetSession: Operation<SessionReset, number>;
  readonly resetConversation: Operation<Erasure, Erased>;
  readonly compact: ContextApi['compact'];
  /** Called when a conversation was reset or deleted, to stop what still runs for it. */
  readonly cleared: (ref: string) => void;
  /** Aborts the turns of a conversation and their background work before it is deleted. */
  readonly stop: (ref: string) => void;
  /** Ends the approval waits of a conversation before it is cleared, and blocks new ones until disposed. */
  readonly clearing: (ref: string) => Promise<Disposable>;
  /** Runs exclusively in the lane of a conversation, without concurrent turns. */
  readonly alone: <T>(ref: string, call: CallContext, run: () => Promise<T>) => Promise<T>;
}

export interface Changing {
  readonly methods: ChangingMethods;
  /** Resets the conversation when its agent's policy requires it; the caller must hold its lane. Free without a policy. */
  applyResetPolicy(target: ConversationTarget, agent: Agent): Promise<boolean>;
}

export function createChanging(deps: ChangingDeps): Changing {
  const { db, bus, clock, addressing } = deps;

  function expired(row: ConversationTarget, reason: EventPayload<'session:expired'>['reason']): void {
    bus.emit('session:expired', { ...identityOf(row), reason, timestamp: clock.now() }, row.principalId);
  }

  /** Runs in the lane of a conversation; rejects calls from its own turn, which could never get the lane. */
  async function alone<T>(ref: string, call: CallContext, run: () => Promise<T>): Promise<T> {
    refuseOwn(ref, call);
    return deps.alone(ref, call, run);
  }

  function refuseOwn(ref: string, call: CallContext): void {
    if (call.agentCaller?.conversationRef === ref)
      throw new AppError('precondition_failed', 'A turn cannot wait for its own conversation; another caller must request this');
  }

  function refuseAgents(call: CallContext, method: string): void {
    if (call.agentCaller !== undefined) throw new AppError('denied', `${method} is for administrators, not for agents`);
  }

  const methods: ChangingMethods = {
    'session.delete': async (address, call) => {
      refuseAgents(call, 'session.delete');
      const found = await addressing.existing(address, call);
      refuseOwn(found.ref, call);
      using _clearing = await deps.clearing(found.ref);
      // Directly before entering the lane, so that nothing runs in between.
      deps.stop(found.ref);
      return await alone(found.ref, call, async () => {
        const atMs = clock.now();
        const archiveId = newId('ar');
        const audit = auditRow(call, atMs, {
          actionType: 'session.delete',
          classification: 'destructive',
          target: found.ref,
          metadata: { archiveId },
        });
        const row = await db.write(deps.deleteConversation, {
          ref: found.ref,
          archiveId,
          atMs,
          audit,
          ...(found.turnCount === 0 && { pending: found }),
        });
        deps.cleared(row.ref);
        announceAudit(bus, audit);
        expired(row, 'deleted');
        return {
          ...identityOf(row),
          deleted: true as const,
          archiveId,
          transcript: { messageCount: row.messageCount, createdAt: row.createdAtMs, updatedAt: row.updatedAtMs },
        };
      });
    },

    'session.reset': async (address, call) => {
      const { named, row } = await addressing.ownOrExisting(address, call);
      if (row === undefined) return { ...identityOf(named), reset: true as const, previousMessageCount: 0 };
      refuseOwn(row.ref, call);
      using _clearing = await deps.clearing(row.ref);
      return await alone(row.ref, call, async () => {
        const audit = auditRow(call, clock.now(), { actionType: 'session.reset', classification: 'mutate', target: row.ref });
        const previousMessageCount = await db.write(deps.resetSession, { ref: row.ref, audit });
        deps.cleared(row.ref);
        announceAudit(bus, audit);
        if (previousMessageCount > 0) expired(row, 'reset');
        return { ...identityOf(row), reset: true as const, previousMessageCount };
      });
    },

    'session.reset_conversation': async ({ memory, purgeDerived, purge_derived: alias, ...address }, call) => {
      refuseAgents(call, 'session.reset_conversation');
      const { named, row } = await addressing.find(address, call);
      const purge = purgeDerived ?? alias ?? false;
      // Memories outlive their conversation, but an inaccessible reference, or one for another agent or key, matches nothing.
      const doubtful =
        call.identity.agents !== undefined || (address.conversationRef !== undefined && (address.agentId ?? address.sessionKey) !== undefined);
      if (row === undefined && doubtful) return erasedOf(named.ref, { messages: 0, summaries: 0, ...(memory && { forgotten: noMemories }) });
      refuseOwn(named.ref, call);
      using _clearing = await deps.clearing(named.ref);
      return await alone(named.ref, call, async () => {
        const audit = auditRow(call, clock.now(), {
          actionType: 'session.reset_conversation',
          classification: 'destructive',
          target: named.ref,
          metadata: { memory, purgeDerived: purge },
        });
        const memories = !memory ? 'keep' : purge ? 'purge' : 'delete';
        const erased = await db.write(deps.resetConversation, { ref: named.ref, memories, audit });
        deps.cleared(named.ref);
        announceAudit(bus, audit);
        if (row !== undefined && erased.messages > 0) expired(row, 'reset_conversation');
        return erasedOf(named.ref, erased);
      });
    },

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

  return {
    methods,
    async applyResetPolicy(target, agent) {
      const { reset } = agent.config.session;
      if (reset.mode === 'none' && reset.dm === undefined && reset.group === undefined && reset.thread === undefined) return false;
      const rule = resetRuleOf(reset, target.sessionKey);
      if (rule.mode === 'none') return false;
      const row = await db.read(findConversation, { ref: target.ref, principalId: null, agentIds: null });
      if (row === undefined || row.lastSeq === row.modelSeqFloor) return false;
      const reason = dueReset(rule, row.updatedAtMs, clock.now());
      if (reason === undefined) return false;
      await db.write(deps.resetSession, { ref: row.ref });
      deps.cleared(row.ref);
      expired(row, reason);
      return true;
    },
  };
}

const noMemories = { memoriesDeleted: 0, derivedDeleted: 0, derivedUnlinked: 0 };

const erasedOf = (ref: string, { messages, summaries, forgotten }: Erased) => ({
  conversationRef: ref,
  messagesDeleted: messages,
  summariesDeleted: summaries,
  ...forgotten,
  runtimeSessionDestroyed: messages > 0 || summaries > 0,
});

/** Returns the key of a fork: that of its source with another channel, so that the kind is the same. */
function forkKeyOf(printed: string): SessionKeyParts {
  const key = parseSessionKey(printed);
  return { ...key, channelId: `${key.channelId.slice(0, 200).toWellFormed()}~${newId('fk').slice(-12)}` };
}
