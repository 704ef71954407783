import type { AgentConfig, TurnOrigin } from '@gatehouse/contract';
import type { CallingTurn, PartOfRoot } from '../../../../kernel/call-context.ts';
import type { ModelMessage } from '../../../../llm/model.ts';
import type { BackgroundAuthority } from '../../../../runtime/background.ts';
import { authorityOf } from '../../../../runtime/tool-policy.ts';
import type { TurnTrace } from '../../../../runtime/turn-trace.ts';
import type { TurnAsk, TurnInput } from '../../../../runtime/turn.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { Recalled } from '../../../knowledge/memory/api.ts';
import type { InjectedSkills } from '../../../knowledge/skills/api.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { Alongside, DurableTurn } from '../api.ts';
import type { OpenDurableTurn } from '../durable/durable.ts';
import type { Admitted } from '../lanes/admission.ts';
import { putInFront } from '../messages/in-front.ts';
import type { Question, TurnStart, OpenRow } from './turn-row.ts';

/** A fully prepared turn, ready to run and to be stored. */
export interface PreparedTurn {
  /** Known before it begins where its preparation calls models; new otherwise. */
  readonly id?: string;
  readonly target: ConversationTarget;
  readonly agent: Agent;
  readonly origin: TurnOrigin;
  readonly ask: TurnAsk;
  /** Earlier messages, and those of the request. */
  readonly history: readonly ModelMessage[];
  readonly brought: readonly ModelMessage[];
  /** Whether history and the messages of the request must be sent completely. */
  readonly whole?: boolean | undefined;
  readonly question: Question;
  /** Memories about the question, sent before it and never stored. */
  readonly remembered?: Recalled | undefined;
  /** Whether memories were searched for the question. */
  readonly recalls?: boolean | undefined;
  /** Skills that match the question or that it calls, handled the same way. */
  readonly skills?: InjectedSkills | undefined;
  /** Whether the question and the turn's messages are stored. */
  readonly kept: boolean;
  readonly alongside?: Alongside | undefined;
  /** Background permissions and authority of a stored turn. */
  readonly background?: BackgroundAuthority | undefined;
  /** Whether earlier turns have read untrusted text; set for stored turns. */
  readonly taintedBefore?: boolean | undefined;
  /** See `TurnInput`; set by the server, never by a request. */
  readonly synthetic?: true | undefined;
  readonly isolated?: true | undefined;
  /** Present for a turn that survives its process and decides itself what is stored. */
  readonly durable?: OpenDurableTurn | undefined;
}

/** A turn that may run: its row, and the turn as calls of its tools see it. */
export interface BegunTurn {
  readonly start: TurnStart;
  readonly calling: CallingTurn;
  /** The row, for a turn that has no ledger. */
  readonly row: OpenRow;
  readonly trace?: TurnTrace | undefined;
}

/** Returns what the loop needs, except the budget. */
export function toInput(
  turn: PreparedTurn,
  { start, calling, row, trace }: BegunTurn,
  { call, controller, messages }: Admitted,
): Omit<TurnInput, 'budget'> {
  const { target, agent, origin, durable } = turn;
  const sent = messagesOf(turn);
  const agentCaller = { agentId: agent.id, principalId: target.principalId, conversationRef: target.ref, turn: calling };
  return {
    ...turn.ask,
    turnId: start.id,
    traceId: call.traceId,
    agentId: agent.id,
    agent: configOf(agent.config, durable?.turn),
    origin,
    messages: turn.history.length === 0 ? sent : [...turn.history, ...sent],
    whole: turn.whole === true ? [...turn.history, ...turn.brought] : undefined,
    taintedBefore: turn.taintedBefore === true || durable?.isTainted === true,
    workspaceDir: agent.workspaceDir,
    conversationRef: target.ref,
    sessionKey: target.sessionKey,
    principalId: target.principalId,
    call: { ...call, agentCaller },
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    beforeOnce: durable === undefined ? (reported) => row.beforeOnce(reported) : undefined,
    ledger: durable?.ledger,
    operation: durable?.turn.operation,
    authority: durable?.turn.authority,
    steering: durable === undefined ? messages : durable.turn.steering,
    ...(turn.kept && agent.config.session.keepReasoning && { keepsThoughts: true }),
    background: turn.background,
    trace,
    ...(isSynthetic(turn) && { synthetic: true }),
    ...(turn.isolated === true && { isolated: true }),
  };
}

/** Whether nobody asked for the turn: see `TurnInput`. */
export const isSynthetic = ({ synthetic, durable }: Pick<PreparedTurn, 'synthetic' | 'durable'>): boolean =>
  (synthetic ?? durable?.turn.synthetic) === true;

/** Puts memories and skills before the question, for this call alone. */
function messagesOf({ brought, remembered, skills }: PreparedTurn): readonly ModelMessage[] {
  const recalled = remembered === undefined ? brought : putInFront(brought, remembered.text);
  return skills === undefined ? recalled : putInFront(recalled, skills.text);
}

/** Returns the root run of a turn and its position in it. */
export function partOfTurn(
  turn: Pick<PreparedTurn, 'background' | 'durable' | 'synthetic'>,
  { id: turnId, traceId }: Pick<TurnStart, 'id' | 'traceId'>,
) {
  const { rootRunId = turn.background?.rootRunId ?? `root-turn-${turnId}`, run } = turn.durable?.turn ?? {};
  const synthetic = isSynthetic(turn);
  return { turnId, traceId, rootRunId, ...(run !== undefined && { run }), ...(synthetic && { synthetic }) } satisfies PartOfRoot;
}

/** Returns the turn as calls of its tools see it. */
export function callingTurn({ target, origin, background, durable, synthetic }: PreparedTurn, start: Pick<TurnStart, 'id' | 'traceId'>): CallingTurn {
  const { authority, toolPolicy, toolBounds, endpoint, author } = durable?.turn ?? {};
  const by = authorityOf({ origin, ...(background !== undefined && { background }), ...(authority !== undefined && { authority }) });
  const policies = [...(toolPolicy === undefined ? [] : [toolPolicy]), ...(toolBounds?.policies ?? [])];
  return {
    ...partOfTurn({ background, durable, synthetic }, start),
    origin: by,
    sessionKey: target.sessionKey,
    ...((policies.length > 0 || toolBounds !== undefined) && { toolBounds: { policies, agents: toolBounds?.agents ?? [] } }),
    ...(endpoint !== undefined && { endpoint }),
    ...(author !== undefined && { author }),
  };
}

/** Applies the overrides of the operation and of the work item. Returns the same object when nothing changes, because caches are keyed by it. */
function configOf(config: AgentConfig, work: Partial<DurableTurn> = {}): AgentConfig {
  const { operation = 'interactive', timeoutMs, cacheRetention, maxSteps } = work;
  const modelTimeoutMs = config.operationModels[operation]?.timeoutMs;
  if ([modelTimeoutMs, timeoutMs, cacheRetention, maxSteps].every((wish) => wish === undefined)) return config;
  return {
    ...config,
    ...(modelTimeoutMs !== undefined && { modelTimeoutMs }),
    ...(timeoutMs !== undefined && { turnTimeoutMs: timeoutMs }),
    ...(cacheRetention !== undefined && { cacheRetention }),
    ...(maxSteps !== undefined && { maxSteps }),
  };
}
