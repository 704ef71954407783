import { newId } from '../../../../kernel/ids.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import { LaneFullError, LaneKeptError } from '../../../../kernel/lane.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { WorkClaim, WorkWait } from '../../../unattended/durable/api.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { DurableOutcome, DurableTurn, TurnsApi } from '../api.ts';
import type { Admitted } from '../lanes/admission.ts';
import type { TurnEntrance } from '../lanes/turn-entrance.ts';
import type { TurnLanes } from '../lanes/turn-lanes.ts';
import { modelsTaking } from '../messages/attachments.ts';
import { type ModelNames, modelsForOperation } from '../preparation/resolve-target.ts';
import type { Converse } from '../running/converse.ts';
import { type DurableDeps, OpenDurableTurn } from './durable.ts';

export interface DurableTurnsDeps extends DurableDeps {
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly agents: AgentsApi;
  readonly models: ModelNames & Pick<Models, 'unsupported'>;
  readonly lanes: Pick<TurnLanes, 'waitBehind'>;
  readonly suspendWork: Operation<WorkClaim & { readonly wait: WorkWait; readonly atMs: number }, boolean>;
  /** Resets the conversation when its agent's policy requires it; free without a policy. */
  readonly applyResetPolicy: (target: ConversationTarget, agent: Agent) => Promise<boolean>;
}

/** The same as the longest wait for an approval. */
const longestBehindMs = 7 * 86_400_000;
/** Bounds the cost of a lost hint. */
const checkBehindMs = 60 * 60_000;
/** Queues rarely drain faster, and a long backlog should not be retried constantly. */
const checkCapacityMs = 15_000;

type LaneWait = Pick<WorkWait, 'kind' | 'subject' | 'cause'> & { readonly checkMs: number };
type WaitingTurn = Pick<DurableTurn, 'target' | 'workId' | 'owner' | 'fence'>;

/** Creates the turns of durable work items. */
export function createDurableTurns(deps: DurableTurnsDeps, entrance: TurnEntrance, converse: Converse): Pick<TurnsApi, 'runDurably' | 'announce'> {
  /** Waits for the lane of a work item; `admit` then returns its current agent. */
  async function enter<T>(
    turn: WaitingTurn & Pick<DurableTurn, 'origin'>,
    call: CallContext,
    run: (admitted: Admitted, admit: () => Agent) => Promise<T>,
  ): Promise<T | DurableOutcome> {
    entrance.assertOpen();
    const { target, origin, workId } = turn;
    const admit = () => deps.agents.usable(target.agentId, call);
    const delegated = origin === 'subagent' || origin === 'graph';
    const agent = admit();
    try {
      return await entrance.enter({ target, agent, kept: true, delegated, workId }, call, (admitted) => run(admitted, admit));
    } catch (error) {
      if (error instanceof LaneFullError) return await waitForLane(turn, waitForCapacity(target, error), call);
      if (!(error instanceof LaneKeptError)) throw error;
      const outcome = await waitForLane(turn, { kind: 'conversation', subject: target.ref, checkMs: checkBehindMs }, call);
      if (outcome.settled) await deps.lanes.waitBehind(target.ref);
      return outcome;
    }
  }

  /** Requeues work that cannot enter its lane now, without holding a slot or counting an attempt. */
  async function waitForLane(turn: WaitingTurn, { checkMs, ...what }: LaneWait, { traceId }: CallContext): Promise<DurableOutcome> {
    const { target, workId: id, owner, fence } = turn;
    const atMs = deps.clock.now();
    const wait = { ...what, untilMs: atMs + longestBehindMs, lookAtMs: atMs + checkMs };
    const settled = await deps.db.write(deps.suspendWork, { id, owner, fence, wait, atMs });
    const { ref: conversationRef, sessionKey, agentId } = target;
    const nothing = { text: '', tokensUsed: { input: 0, output: 0, total: 0 }, cachedInput: 0, costUsd: 0, tainted: false, model: '', turnId: '' };
    return { ...nothing, finishReason: 'stop', conversationRef, sessionKey, agentId, traceId, settled, state: 'accepted', outputs: [] };
  }

  async function run(turn: DurableTurn, agent: Agent, admitted: Admitted): Promise<DurableOutcome> {
    const { target, origin, message, attachments = [] } = turn;
    const models = modelsTaking(modelsForOperation(agent, deps.models, turn), attachments, deps.models.unsupported);
    const { ref: conversationRef, sessionKey, agentId, principalId } = target;
    const about = { conversationRef, sessionKey, agentId, principalId, origin, traceId: admitted.call.traceId, bootId: deps.bootId };
    const durable = await OpenDurableTurn.open(deps, turn, { ...about, id: newId('tn'), startedAtMs: deps.clock.now() }, admitted);
    if (!durable.isResumed && origin !== 'heartbeat') await deps.applyResetPolicy(target, agent);
    return durable.ended(await converse({ target, agent, models, origin, question: { text: message, attachments }, durable }, admitted, turn.sink));
  }

  return {
    runDurably: async (turn, call) => enter(turn, call, (admitted, admit) => run(turn, admit(), admitted)),
    announce: async (turn, take, call) =>
      enter(turn, call, async (admitted, admit) => {
        const announcement = await take();
        return announcement === undefined ? undefined : run({ ...turn, ...announcement }, admit(), admitted);
      }),
  };
}

function waitForCapacity({ ref, agentId }: ConversationTarget, { full, message }: LaneFullError): LaneWait {
  const what = full === 'lane' ? { kind: 'conversation' as const, subject: ref } : { kind: 'agent' as const, subject: agentId };
  return { ...what, cause: message, checkMs: checkCapacityMs };
}
