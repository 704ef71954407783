import type { ResultInput } from '@gatehouse/contract';
import type { Live } from '../../../kernel/config/live.ts';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, type ChatEndpoint, isTaintedCall, type ToolBounds } from '../../../kernel/call-context.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../autonomy/api.ts';
import type { DurableWork } from '../../unattended/durable/api.ts';
import type { ConversationAddress } from '../../conversations/sessions/api.ts';
import { type AnswerDeps, Answers, sendLimits } from './answer.ts';
import type { SendIntake, SendRow } from './api.ts';
import { workOf } from './exchange.ts';
import { sendKind } from './work-key.ts';
import { createSendTool } from './tool.ts';
import { type SendEnd, Waiting } from './waiting.ts';

/** A conversation that can receive a message. */
export interface SendTarget {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  /** Set for a sub-agent: its bounds in addition to the policy of its agent. */
  readonly bounds?: ToolBounds | undefined;
  /** Set for a sub-agent: whether its run has not ended. */
  readonly isStarting?: boolean;
}

type Sender = Pick<SendTarget, 'ref' | 'sessionKey' | 'agentId'>;

export interface SessionSendDeps extends Omit<AnswerDeps, 'waiting' | 'wake' | 'mayContinue'> {
  readonly agents: AgentsApi;
  readonly autonomy: Pick<AutonomyApi, 'admit' | 'budget' | 'onStop'>;
  readonly durable: Pick<DurableWork, 'handle' | 'wake' | 'waitFor'>;
  readonly policy: Live<{ readonly enabled: boolean; readonly maxPingPongTurns: number; readonly allowAgents: readonly string[] }>;
  readonly acceptSend: Operation<SendIntake, void>;
  /** Finds a conversation that the caller can reach, for an agent also one of its sub-agents; throws `not_found` otherwise. */
  readonly findTarget: (address: ConversationAddress, call: CallContext) => Promise<SendTarget>;
  /** Returns whether a turn of the conversation is running or queued. */
  readonly isPending: (ref: string) => boolean;
  /** Returns the chat that a conversation belongs to. */
  readonly chatOf: (conversationRef: string) => Promise<ChatEndpoint | undefined>;
  /** Returns a token's own conversation with an agent. */
  readonly ownOf: (agentId: string, call: CallContext) => Sender;
}

export interface SessionSend {
  readonly methods: HandlersOf<'session.send'>;
  readonly tools: readonly Tool[];
}

/** Sends messages between conversations: each is stored with its delivery work before it is acknowledged. */
export function createSessionSend(deps: SessionSendDeps): SessionSend {
  const { db, bus, clock, policy } = deps;
  const waiting = new Waiting(clock);
  const answers = new Answers({ ...deps, waiting, wake: () => deps.durable.wake(sendKind), mayContinue: deps.autonomy.budget.covers });
  deps.durable.handle(sendKind, (item, signal) => answers.handle(item, signal), {
    ...sendLimits,
    gaveUp: (item, errorKind, cause) => answers.gaveUp(item, errorKind, cause),
  });
  bus.listen(['session:expired'], ({ payload }) => {
    if (!('reason' in payload) || payload.reason !== 'deleted' || !('conversationRef' in payload)) return;
    // The deletion ended stored messages; without this write a later message fails when its turn finds no conversation.
    answers.conversationDeleted(payload.conversationRef).catch(() => {});
  });
  deps.autonomy.onStop(async (rootRunId, how) => (how === 'kill' ? answers.stop(rootRunId) : 0));

  /** Returns the sender, which receives the answers of `ping-pong`. */
  function senderOf(mode: SendRow['mode'], target: SendTarget, call: CallContext): Sender | undefined {
    const { agentCaller } = call;
    if (agentCaller === undefined) return mode === 'ping-pong' ? deps.ownOf(target.agentId, call) : undefined;
    const { conversationRef: ref, agentId, turn } = agentCaller;
    return turn === undefined ? undefined : { ref, agentId, sessionKey: turn.sessionKey };
  }

  const send: SessionSend['methods']['session.send'] = async ({ text, mode, timeoutMs, maxTurns, ...address }, call) => {
    if (!policy.current.enabled)
      throw new AppError('denied', 'Messages between conversations are switched off (security.agentToAgent.enabled is false)');
    if (maxTurns !== undefined && mode !== 'ping-pong')
      throw new AppError('invalid_params', 'maxTurns: only allowed with mode ping-pong', {
        param: 'maxTurns',
        issues: [{ path: 'maxTurns', message: 'only allowed with mode ping-pong' }],
      });
    const target = await deps.findTarget(address, call);
    deps.agents.usable(target.agentId, call);
    const { agentCaller } = call;
    const from = senderOf(mode, target, call);
    // Two turns would wait for each other.
    if (mode !== 'fire-and-forget' && from?.ref === target.ref)
      throw new AppError('precondition_failed', 'A conversation cannot wait for itself: send with mode fire-and-forget', { param: 'mode' });
    // The calling turn occupies its conversation, so answers can reach it only afterwards.
    const isAwaited = mode === 'wait' || (mode === 'ping-pong' && agentCaller === undefined);
    if (isAwaited && agentCaller !== undefined && waiting.wouldDeadlock(agentCaller.conversationRef, target.ref))
      throw new AppError('precondition_failed', 'That conversation is waiting for this one: send with mode fire-and-forget', { param: 'mode' });
    if (agentCaller !== undefined) {
      const { allowAgents } = policy.current;
      if (target.agentId !== agentCaller.agentId && allowAgents.length > 0 && !allowAgents.includes(target.agentId))
        throw new AppError('denied', `Messages to agent ${target.agentId} are not allowed (security.agentToAgent.allowAgents)`);
      deps.autonomy.admit('orch:message', callingAgent(call), call);
    }

    const chat = agentCaller === undefined ? await deps.chatOf(target.ref) : agentCaller.turn?.endpoint;
    const row = rowOf({ text, mode, maxTurns: maxTurns ?? policy.current.maxPingPongTurns, createdAtMs: clock.now() }, { from, target, chat }, call);
    const waiter = isAwaited
      ? waiting.wait(row.id, { from: agentCaller?.conversationRef, to: target.ref, ms: timeoutMs, signal: call.signal })
      : undefined;
    const startedMs = clock.monotonic();
    try {
      const isStarting = target.isStarting === true || deps.isPending(target.ref);
      await db.write(deps.acceptSend, { send: row, work: workOf(row, 0, row.createdAtMs), isStarting, ageNowMs: clock.ageNow() });
    } catch (error) {
      waiter?.leave();
      throw error;
    }
    announce(row);
    deps.durable.wake(sendKind);
    const sent = { sent: true as const, conversationRef: target.ref, sessionKey: target.sessionKey, agentId: target.agentId, mode };
    return waiter === undefined ? sent : { ...sent, ...resultOf(mode, await waiter.ended, clock.monotonic() - startedMs) };
  };

  function callingAgent(call: CallContext): Agent {
    return deps.agents.usable(call.agentCaller?.agentId, call);
  }

  function announce({ fromRef, toRef, toSessionKey, toAgentId, toPrincipalId, mode, createdAtMs }: SendRow): void {
    bus.emit('session:cross_send', { fromRef, toRef, toSessionKey, agentId: toAgentId, mode, timestamp: createdAtMs }, toPrincipalId);
  }

  return { methods: { 'session.send': send }, tools: [createSendTool(send, deps.isTainted)] };
}

function rowOf(
  message: Pick<SendRow, 'text' | 'mode' | 'maxTurns' | 'createdAtMs'>,
  { from, target, chat }: { readonly from: Sender | undefined; readonly target: SendTarget; readonly chat: ChatEndpoint | undefined },
  call: CallContext,
): SendRow {
  const { identity, agentCaller, traceId } = call;
  const bounds = boundsOf(target, agentCaller);
  return {
    ...message,
    id: newId('ss'),
    byAgent: agentCaller !== undefined,
    fromRef: from?.ref ?? null,
    fromSessionKey: from?.sessionKey ?? null,
    fromAgentId: from?.agentId ?? null,
    toRef: target.ref,
    toSessionKey: target.sessionKey,
    toAgentId: target.agentId,
    toPrincipalId: target.principalId,
    principalId: agentCaller?.principalId ?? identity.principalId,
    tokenId: identity.tokenId,
    authority: agentCaller?.turn?.origin ?? 'rpc',
    rootRunId: agentCaller?.turn?.rootRunId ?? null,
    boundsJson: bounds === undefined ? null : JSON.stringify(bounds),
    chatJson: chat === undefined ? null : JSON.stringify(chat),
    tainted: isTaintedCall(call),
    traceId,
  };
}

/** Returns the bounds of a turn on behalf of an agent: no tool that the agent's own turn or a sub-agent would not have. */
function boundsOf({ bounds }: SendTarget, caller: CallContext['agentCaller']): ToolBounds | undefined {
  if (caller === undefined) return undefined;
  const own = caller.turn?.toolBounds;
  return {
    policies: [...(own?.policies ?? []), ...(bounds?.policies ?? [])],
    agents: [...new Set([caller.agentId, ...(own?.agents ?? []), ...(bounds?.agents ?? [])])],
  };
}

function resultOf(mode: SendRow['mode'], end: SendEnd, runtimeMs: number): Partial<ResultInput<'session.send'>> {
  const { response, errorKind, announced, turnsCompleted, tokens, costNano } = end;
  if (errorKind !== null) throw new AppError('unavailable', `The other conversation did not answer: its turn ended with ${errorKind}`);
  return {
    response: response ?? '',
    announced,
    ...(mode === 'ping-pong' && { turnsCompleted }),
    stats: { runtimeMs: Math.round(runtimeMs), totalTokens: tokens, totalCost: costNano === null ? null : costNano / 1e9 },
  };
}
