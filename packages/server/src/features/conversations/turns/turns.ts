import type { EventPayload, MessageAttachment, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext, ToolBounds } from '../../../kernel/call-context.ts';
import { countTokens } from '../../../llm/count-tokens.ts';
import type { ModelInfo, ModelMessage } from '../../../llm/model.ts';
import type { Models } from '../../../llm/models.ts';
import { LaneFullError, LaneKeptError } from '../../../kernel/lane.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { WorkClaim, WorkWait } from '../../unattended/durable/api.ts';
import type { Asked } from '../../../llm/unsupported.ts';
import type { BackgroundAuthority } from '../../../runtime/background.ts';
import { offeredTools } from '../../../runtime/client-tools.ts';
import type { FenceLabel } from '../../../runtime/fence.ts';
import { createCountFixed } from '../../../runtime/fixed-tokens.ts';
import { countMessage } from '../../../runtime/message-tokens.ts';
import { toolSpec } from '../../../runtime/tool-spec.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { refuseTool } from '../../../runtime/tool-policy.ts';
import type { TurnSink } from '../../../runtime/turn.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { ContextApi, PreparedContext } from '../context/api.ts';
import type { MediaApi } from '../../environment/media/api.ts';
import type { RecallApi } from '../../knowledge/memory/api.ts';
import type { ConversationTarget, SessionsApi } from '../sessions/api.ts';
import type { SkillsApi } from '../../knowledge/skills/api.ts';
import type { Alongside, CompletionRequest, ConversationAddress, DurableOutcome, DurableTurn, Reenter, TurnOutcome, TurnsApi } from './api.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Admitted } from './admission.ts';
import { createAttachments, mediaOf } from './messages/attachments.ts';
import { checkCompletion, fenceCompletion } from './messages/completion.ts';
import { type DurableDeps, DurableRun } from './durable/durable.ts';
import { fittingModels, mediaIn } from './messages/fitting-models.ts';
import { lastExchanges } from './messages/last-exchanges.ts';
import { type ModelAliases, modelsFor, modelsForOperation, resolveTarget } from './resolve-target.ts';
import { showResults } from './messages/result-media.ts';
import { createRuns, type RunDeps, type Runs } from './run.ts';

const countFixed = createCountFixed(countTokens);

/** Estimates the tokens that a turn adds; the next turn counts them. */
const charactersPerToken = 4;

/** The turn that a prompt is for. */
export interface PromptAbout {
  /** Authority of the turn. */
  readonly origin: TurnOrigin;
  /** Whether a person reads the answer and can be asked. */
  readonly attended: boolean;
  /** Locale of the author. */
  readonly locale?: string | undefined;
  /** Omits workspace files and the list of skills. */
  readonly light?: boolean | undefined;
}

export interface TurnsDeps extends RunDeps, DurableDeps {
  readonly memory: RecallApi;
  readonly skills: Pick<SkillsApi, 'inject' | 'ended'>;
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly sessions: Pick<SessionsApi, 'target'>;
  /** Resets the conversation when its agent's policy requires it; free without a policy. */
  readonly applyResetPolicy: (target: ConversationTarget, agent: Agent) => Promise<boolean>;
  /** Signals that messages were stored and must be indexed. */
  readonly noticeMessages: () => void;
  readonly context: Pick<ContextApi, 'prepare' | 'afterTurn'>;
  /** Returns the tokens available to messages in a call of the first of these models. */
  readonly historyCapacity: (agent: Agent, models: readonly ModelInfo[], tools: readonly Tool[], system: readonly string[]) => number;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  /** Waits for the conversation's lane and a slot among the agent's turns, then runs. */
  readonly inLane: <T>(
    entry: {
      readonly target: ConversationTarget;
      readonly agent: Agent;
      /** False for a completion of `/v1`, whose conversation cannot be found. */
      readonly kept: boolean;
      readonly signal: AbortSignal;
      /** Work whose parked turn may return to its lane; others throw `LaneKeptError` while a lane is kept. A full lane throws `LaneFullError`. */
      readonly workId?: string;
      /** Set for turns that do not count among the turns of their agent, because their requester may hold one of those slots. */
      readonly delegated?: boolean;
    },
    run: () => Promise<T>,
  ) => Promise<T>;
  readonly queued: () => number;
  readonly suspendWork: Operation<WorkClaim & { readonly wait: WorkWait; readonly atMs: number }, boolean>;
  /** Registers that work waits behind a conversation; resumes it immediately if the lane was freed meanwhile. */
  readonly behind: (conversationRef: string) => Promise<void>;
  /** Returns the parts of an agent's system prompt, stable ones first. */
  readonly systemPrompt: (agent: Agent, tools: readonly Tool[], about: PromptAbout) => readonly string[];
  /** Checks whether files of the prompt have changed; usually returns undefined, as there is nothing to wait for. */
  readonly refreshPrompt: (agent: Agent) => Promise<void> | undefined;
  /** Fences text that did not come from the operator, deterministically. */
  readonly fence: (text: string, label: FenceLabel) => string;
  /** Inspects untrusted text and announces suspected injections; never changes the text. */
  readonly inspect: (
    text: string,
    about: {
      readonly source: EventPayload<'security:injection_detected'>['source'];
      readonly agentId: string;
      readonly principalId: string;
      readonly conversationRef: string;
      readonly traceId: string;
    },
  ) => void;
  /** Returns the tools allowed by the policies of agent and origin, and by `policy` if given. */
  readonly toolsFor: (agent: Agent, origin: TurnOrigin, policy?: ToolPolicy, bounds?: ToolBounds) => readonly Tool[];
  readonly v1Tools: 'agent' | 'none';
  /** Model names that `/v1` requests may use instead of those of the catalog. */
  readonly modelAliases: ModelAliases;
  /** Why no turn may run at all after repeated crashes; undefined normally. */
  readonly refuse: string | undefined;
}

/** Permissions of a requested turn, which starts a chain of background turns. */
const attendedAuthority: BackgroundAuthority = { chain: 0 };

/** A turn of a stored conversation, with all data known before the conversation is read. */
interface Conversing {
  readonly target: ConversationTarget;
  readonly agent: Agent;
  readonly models: readonly ModelInfo[];
  readonly message: string;
  readonly attached: readonly MessageAttachment[];
  readonly origin: TurnOrigin;
  readonly locale?: string | undefined;
  readonly background?: BackgroundAuthority;
  readonly alongside?: Alongside | undefined;
  readonly durable?: DurableRun;
}

export interface Turns extends Pick<Runs, 'rootTurn' | 'rootTurns' | 'abortRoot' | 'stop' | 'abortAll'> {
  readonly api: TurnsApi;
  readonly reenter: Reenter;
}

export function createTurns(deps: TurnsDeps): Turns {
  const runs = createRuns(deps);
  const attachments = createAttachments(deps);

  function refuseAfterCrashes(): void {
    if (deps.refuse !== undefined) throw new AppError('unavailable', deps.refuse);
  }

  function fit(candidates: readonly ModelInfo[], media: ReturnType<typeof mediaIn>, mediaParam: string, asked?: Asked): readonly ModelInfo[] {
    // Most turns use only text.
    return media.size === 0 && asked === undefined ? candidates : fittingModels(candidates, { media, mediaParam, asked }, deps.models.unsupported);
  }

  /** Runs a turn whose messages are stored; the caller must hold the conversation's lane. */
  async function converse(turn: Conversing, admitted: Admitted, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const { call } = admitted;
    const { target, agent, models, message, attached, background, durable } = turn;
    const authority = background?.begunBy ?? durable?.turn.authority ?? turn.origin;
    const light = durable?.turn.lightContext === true;
    const ownTools = deps.toolsFor(agent, authority, durable?.turn.toolPolicy, durable?.turn.toolBounds);
    const extraTools = durable?.turn.extraTools?.filter((tool) => refuseTool(tool, agent.config, authority) === undefined) ?? [];
    const tools = extraTools.length === 0 ? ownTools : [...ownTools, ...extraTools];
    const refreshing = deps.refreshPrompt(agent);
    if (refreshing !== undefined) await refreshing;
    const attended = turn.origin !== 'background' && durable === undefined;
    const system = deps.systemPrompt(agent, tools, { origin: authority, attended, locale: turn.locale, light });
    const capacity = deps.historyCapacity(agent, models, tools, system);
    const about = { ref: target.ref, agent, principalId: target.principalId, capacity };
    // Search memories and skills in parallel; background turns ask no question.
    const isAsked = turn.origin !== 'background' && !light;
    const remembering = !isAsked
      ? undefined
      : deps.memory.recall(
          { agentId: agent.id, principalId: target.principalId, conversationRef: target.ref, question: message, room: capacity, signal: call.signal },
          agent.config,
          authority,
        );
    const skills = isAsked ? deps.skills.inject({ agent, question: message, origin: authority, room: capacity }) : undefined;
    const limit = durable?.turn.historyTurns;
    const all = limit === 0 ? emptyContext : await deps.context.prepare({ ...about, question: message });
    const past = limit === undefined ? all : lastExchanges(all, limit);
    const remembered = remembering === undefined ? undefined : await remembering;
    const input = models[0]?.input ?? ['text'];
    const history = past.attached.length === 0 ? past.messages : await attachments.restore(past.messages, past.attached, { input, own: attached });
    const inspected = { agentId: agent.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
    if (turn.origin !== 'background') deps.inspect(message, { source: 'user_input', ...inspected });
    const inspectFile = (text: string) => deps.inspect(text, { source: 'external_content', ...inspected });
    const outside = durable?.turn.fenced;
    if (outside !== undefined) inspectFile(outside.text);
    const text =
      outside === undefined ? message : `${message}\n\n${deps.fence(outside.text, { source: outside.source, clean: outside.clean === true })}`;
    // Excerpts are sent with the question but not stored, so that the prefix stays the same across turns.
    const question = past.recalled === undefined ? text : `${past.recalled}\n\n${text}`;
    const asked: ModelMessage =
      attached.length === 0 ? { role: 'user', content: question } : await attachments.attach(question, attached, inspectFile);
    const outcome = await runs.run(
      {
        target,
        agent,
        origin: turn.origin,
        models: past.attached.length === 0 ? models : fit(models, mediaIn(history), 'attachments'),
        tools,
        system,
        history,
        brought: [asked],
        question: { text, attachments: attached },
        remembered,
        skills,
        kept: true,
        background,
        alongside: turn.alongside,
        durable,
        taintedBefore: past.tainted,
      },
      admitted,
      sink,
    );
    deps.noticeMessages();
    const tokens = past.tokens + Math.ceil((message.length + outcome.text.length) / charactersPerToken);
    deps.context.afterTurn({ ...about, tokens, behind: past.behind });
    return outcome;
  }

  /** Runs in the lane of the conversation, as a turn that can be stopped from now on. */
  function inLane<T>(
    entry: Omit<Parameters<TurnsDeps['inLane']>[0], 'signal'>,
    call: CallContext,
    run: (admitted: Admitted) => Promise<T>,
  ): Promise<T> {
    return runs.admit({ agentId: entry.agent.id, conversationRef: entry.target.ref }, call, (admitted) =>
      deps.inLane({ ...entry, signal: admitted.controller.signal }, () => run(admitted)),
    );
  }

  const reenter: Reenter = async ({ target, begunBy, chain, rootRunId, take }, call) => {
    refuseAfterCrashes();
    return inLane({ target, agent: deps.agents.usable(target.agentId, call), kept: true }, call, async (admitted) => {
      const agent = deps.agents.usable(target.agentId, call);
      const models = modelsFor(agent, deps.models);
      const results = take();
      if (results === undefined) return undefined;
      const { taskIds: ids, text: message } = results;
      const alongside: Alongside = {
        opened: () => ({ tasks: { ids, state: 'telling' } }),
        ended: () => ({ tasks: { ids, state: 'told' } }),
      };
      return converse(
        { target, agent, models, message, attached: [], origin: 'background', background: { begunBy, chain, rootRunId }, alongside },
        admitted,
        undefined,
      );
    });
  };

  /** Waits for the lane of a work item; `admit` then returns its current agent. */
  async function inLaneOf<T>(
    turn: Pick<DurableTurn, 'target' | 'origin' | 'workId' | 'owner' | 'fence'>,
    call: CallContext,
    run: (admitted: Admitted, admit: () => Agent) => Promise<T>,
  ): Promise<T | DurableOutcome> {
    refuseAfterCrashes();
    const { target, origin, workId } = turn;
    const agent = deps.agents.usable(target.agentId, call);
    const delegated = origin === 'subagent' || origin === 'graph';
    try {
      return await inLane({ target, agent, kept: true, delegated, workId }, call, (admitted) =>
        run(admitted, () => deps.agents.usable(target.agentId, call)),
      );
    } catch (error) {
      if (error instanceof LaneFullError) return await waitForLane(turn, waitForCapacity(turn.target, error), call);
      if (!(error instanceof LaneKeptError)) throw error;
      const { ref } = turn.target;
      const outcome = await waitForLane(turn, { kind: 'conversation', subject: ref, checkMs: checkBehindMs }, call);
      if (outcome.settled) await deps.behind(ref);
      return outcome;
    }
  }

  /** Requeues work that cannot enter its lane now, without holding a slot or counting an attempt. */
  async function waitForLane(
    { target, workId: id, owner, fence }: Pick<DurableTurn, 'target' | 'workId' | 'owner' | 'fence'>,
    { checkMs, ...what }: LaneWait,
    { traceId }: CallContext,
  ): Promise<DurableOutcome> {
    const atMs = deps.clock.now();
    const wait = { ...what, untilMs: atMs + longestBehindMs, lookAtMs: atMs + checkMs };
    const settled = await deps.db.write(deps.suspendWork, { id, owner, fence, wait, atMs });
    const { ref: conversationRef, sessionKey, agentId } = target;
    const nothing = { text: '', tokensUsed: { input: 0, output: 0, total: 0 }, cachedInput: 0, costUsd: 0, tainted: false, model: '', turnId: '' };
    return { ...nothing, finishReason: 'stop', conversationRef, sessionKey, agentId, traceId, settled, state: 'accepted' };
  }

  async function converseDurably(turn: DurableTurn, agent: Agent, admitted: Admitted): Promise<DurableOutcome> {
    const { target, origin } = turn;
    const models = modelsForOperation(agent, deps.models, turn);
    const { ref: conversationRef, sessionKey, agentId, principalId } = target;
    const about = { conversationRef, sessionKey, agentId, principalId, origin, traceId: admitted.call.traceId };
    const run = await DurableRun.open(deps, turn, { ...about, id: newId('tn'), startedAtMs: deps.clock.now() }, admitted);
    if (!run.isResumed && origin !== 'heartbeat') await deps.applyResetPolicy(target, agent);
    const conversing = { target, agent, models, message: turn.message, attached: [], origin, durable: run };
    return run.ended(await converse(conversing, admitted, undefined));
  }

  /** Checks a completion and finds its agent; `prepare` returns what depends on the agent's configuration. */
  async function admitCompletion(request: CompletionRequest, call: CallContext) {
    refuseAfterCrashes();
    checkCompletion(request);
    const chosen = resolveTarget(deps.modelAliases, request.model, deps.agents, deps.models, call.identity.agents);
    const named = deps.agents.usable(chosen.agentId, call);
    const { history = [], clientTools, options } = request;
    const fenced = fenceCompletion(request, deps.fence);
    const asked =
      options === undefined && clientTools === undefined ? undefined : { options, tools: clientTools !== undefined && clientTools.length > 0 };
    const prepare = (agent: Agent) => {
      const tools =
        (call.identity.compat?.tools ?? deps.v1Tools) === 'none' ? [] : offeredTools(deps.toolsFor(agent, 'v1'), clientTools, options?.toolChoice);
      const candidates = modelsFor(agent, deps.models, chosen.model);
      const [primary] = candidates;
      const shown = (messages: readonly ModelMessage[]) => (primary === undefined ? messages : showResults(messages, primary));
      const sent = { history: shown(history), brought: shown(fenced.messages) };
      const models = fit(candidates, mediaIn([...sent.history, ...sent.brought]), 'messages', asked);
      return { ...sent, agent, tools, models, system: [...deps.systemPrompt(agent, tools, { origin: 'v1', attended: true }), ...fenced.system] };
    };
    const refreshing = deps.refreshPrompt(named);
    if (refreshing !== undefined) await refreshing;
    return { chosen, named, fenced, prepare };
  }

  const api: TurnsApi = {
    durable: async (turn, call) => inLaneOf(turn, call, (admitted, admit) => converseDurably(turn, admit(), admitted)),

    announce: async (turn, take, call) =>
      inLaneOf(turn, call, async (admitted, admit) => {
        const announcement = await take();
        return announcement === undefined ? undefined : converseDurably({ ...turn, ...announcement }, admit(), admitted);
      }),

    async execute({ message, address, origin = 'rpc', locale, attachments: ids = [], alongside }, call, sink) {
      refuseAfterCrashes();
      const target = await deps.sessions.target(address, call);
      const asked = deps.agents.usable(target.agentId, call);
      const attached = ids.length === 0 ? [] : await attachments.find(ids, call);
      const modelsOf = (agent: Agent) => fit(modelsFor(agent, deps.models), mediaOf(attached), 'attachments');
      // Checked before waiting: no model may support the attachments.
      if (attached.length > 0) modelsOf(asked);
      return inLane({ target, agent: asked, kept: true }, call, async (admitted) => {
        // Reload after waiting, because the agent may have been suspended, deleted or changed.
        const agent = deps.agents.usable(target.agentId, call);
        const models = modelsOf(agent);
        await deps.applyResetPolicy(target, agent);
        return converse({ target, agent, models, message, attached, origin, locale, background: attendedAuthority, alongside }, admitted, sink);
      });
    },

    async complete(request, call, sink) {
      const { chosen, named, fenced, prepare } = await admitCompletion(request, call);
      const target = await deps.sessions.target(completionAddress(request, named.id), call);
      const about = { agentId: named.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
      // System texts are instructions of the authenticated client.
      for (const { role, content } of request.messages)
        if (role !== 'system' && role !== 'developer')
          deps.inspect(content, { source: role === 'user' ? 'user_input' : 'external_content', ...about });
      const prepared = prepare(named);
      return inLane({ target, agent: named, kept: false }, call, async (admitted) => {
        // Reload after waiting for the agent's group, because the agent may have been suspended, deleted or changed.
        const agent = deps.agents.usable(chosen.agentId, call);
        if (agent !== named) await deps.refreshPrompt(agent);
        const ready = agent === named ? prepared : prepare(agent);
        const room = ready.models[0]?.contextWindow ?? 0;
        const remembering = deps.memory.recall({ ...about, question: fenced.userText, room, signal: admitted.call.signal }, agent.config, 'v1');
        return runs.run(
          {
            ...ready,
            target,
            origin: 'v1',
            whole: request.mayShorten !== true,
            question: { text: fenced.userText },
            remembered: remembering === undefined ? undefined : await remembering,
            kept: false,
            temperature: request.temperature,
            maxTokens: answerLength(request, ready.models[0]),
            clientTools: request.clientTools,
            options: request.options,
            alongside: request.alongside,
          },
          admitted,
          sink,
        );
      });
    },

    async countInput(request, call) {
      const { named, prepare } = await admitCompletion(request, call);
      const { tools, system, history, brought } = prepare(named);
      const fixed = countFixed(system, [...tools.map(toolSpec), ...(request.clientTools ?? [])]);
      return [...history, ...brought].reduce((sum, message) => sum + countMessage(message, countTokens), fixed);
    },

    counts: () => ({ running: runs.running(), queued: deps.queued() }),
  };

  return {
    api,
    reenter,
    rootTurn: runs.rootTurn,
    rootTurns: runs.rootTurns,
    abortRoot: runs.abortRoot,
    stop: runs.stop,
    abortAll: runs.abortAll,
  };
}

/** The same as the longest wait for an approval. */
const longestBehindMs = 7 * 86_400_000;
/** Bounds the cost of a lost hint. */
const checkBehindMs = 60 * 60_000;
/** Queues rarely drain faster, and a long backlog should not be retried constantly. */
const checkCapacityMs = 15_000;

type LaneWait = Pick<WorkWait, 'kind' | 'subject' | 'cause'> & { readonly checkMs: number };

function waitForCapacity({ ref, agentId }: ConversationTarget, { full, message }: LaneFullError): LaneWait {
  const what = full === 'lane' ? { kind: 'conversation' as const, subject: ref } : { kind: 'agent' as const, subject: agentId };
  return { ...what, cause: message, checkMs: checkCapacityMs };
}

const emptyContext: PreparedContext = { messages: [], attached: [], hasNotes: false, tokens: 0, behind: false, tainted: false };

function answerLength({ maxTokens, maxTokensIsBound }: CompletionRequest, model: ModelInfo | undefined): number | undefined {
  return maxTokensIsBound === true && maxTokens !== undefined && model !== undefined ? Math.min(maxTokens, model.maxTokens) : maxTokens;
}

/** Returns the address of http-gateway.md §2.5; the peer makes every completion a separate conversation. */
function completionAddress(request: CompletionRequest, agentId: string): ConversationAddress {
  return { agentId, sessionKey: { userId: 'compat-api', channelId: request.channelId ?? 'compat', peerId: request.completionId } };
}
