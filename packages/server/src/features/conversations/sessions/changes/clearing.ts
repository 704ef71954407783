import type { EventPayload } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { ConversationTarget, Erased, Erasure, SessionReset } from '../api.ts';
import type { Addressing } from '../reading/reach.ts';
import { identityOf } from '../reading/view.ts';
import type { Archival, ConversationRow } from '../store.ts';
import { type Alone, refuseOwnTurn } from './alone.ts';
import { findDueReset, hasResetPolicy } from './reset-policy.ts';

export interface ClearingDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly addressing: Addressing;
  readonly alone: Alone;
  readonly deleteConversation: Operation<Archival, ConversationRow>;
  readonly resetSession: Operation<SessionReset, number>;
  readonly resetConversation: Operation<Erasure, Erased>;
  /** Called when a conversation was reset or deleted, to stop what still runs for it. */
  readonly cleared: (ref: string) => void;
  /** Removes what traces keep of the texts of a conversation. */
  readonly forgetTraces: (ref: string) => Promise<void>;
  /** Aborts the turns of a conversation and their background work before it is deleted. */
  readonly stop: (ref: string) => void;
  /** Ends the approval waits of a conversation before it is cleared, and blocks new ones until disposed. */
  readonly clearing: (ref: string) => Promise<Disposable>;
}

export interface Clearing {
  readonly methods: HandlersOf<`session.${'delete' | 'reset' | 'reset_conversation'}`>;
  /** Resets the conversation when its agent's policy requires it; the caller must hold its lane. Free without a policy. */
  applyResetPolicy(target: ConversationTarget, agent: Agent): Promise<boolean>;
}

/** Deletes and resets conversations. */
export function createClearing(deps: ClearingDeps): Clearing {
  const { db, bus, clock, addressing, alone } = deps;

  function expired(row: ConversationTarget, reason: EventPayload<'session:expired'>['reason']): void {
    bus.emit('session:expired', { ...identityOf(row), reason, timestamp: clock.now() }, row.principalId);
  }

  const methods: Clearing['methods'] = {
    'session.delete': async (address, call) => {
      refuseAgents(call, 'session.delete');
      const found = await addressing.existing(address, call);
      refuseOwnTurn(found.ref, call);
      // Before the messages: what fails in between leaves a conversation that can be deleted again.
      await deps.forgetTraces(found.ref);
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
        // Those of the turn that was stopped. Not before the write: pending work of the conversation would run meanwhile.
        await deps.forgetTraces(row.ref);
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
      refuseOwnTurn(row.ref, call);
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
      refuseOwnTurn(named.ref, call);
      await deps.forgetTraces(named.ref);
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
        await deps.forgetTraces(named.ref);
        return erasedOf(named.ref, erased);
      });
    },
  };

  return {
    methods,
    async applyResetPolicy(target, agent) {
      if (!hasResetPolicy(agent.config.session.reset)) return false;
      const due = await findDueReset(deps, target, agent.config.session.reset);
      if (due === undefined) return false;
      const { row, reason } = due;
      await db.write(deps.resetSession, { ref: row.ref });
      deps.cleared(row.ref);
      expired(row, reason);
      return true;
    },
  };
}

function refuseAgents(call: CallContext, method: string): void {
  if (call.agentCaller !== undefined) throw new AppError('denied', `${method} is for administrators, not for agents`);
}

const noMemories = { memoriesDeleted: 0, derivedDeleted: 0, derivedUnlinked: 0 };

const erasedOf = (ref: string, { messages, summaries, forgotten }: Erased) => ({
  conversationRef: ref,
  messagesDeleted: messages,
  summariesDeleted: summaries,
  ...forgotten,
  runtimeSessionDestroyed: messages > 0 || summaries > 0,
});
