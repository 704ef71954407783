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
import type { BackgroundRights } from '../../../runtime/background.ts';
import { toolsBeside } from '../../../runtime/client-tools.ts';
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

/** For a guess at what a turn adds; the next turn counts it. */
const charactersPerToken = 4;

/** Whose turn a prompt is for. */
export interface PromptAbout {
  /** By whose rights the turn acts. */
  readonly origin: TurnOrigin;
  /** Whether somebody reads the answer and can be asked. */
  readonly attended: boolean;
  /** Of the person who writes. */
  readonly locale?: string | undefined;
  /** Without files of the workspace and without the list of skills. */
  readonly light?: boolean | undefined;
}

export interface TurnsDeps extends RunDeps, DurableDeps {
  readonly memory: RecallApi;
  readonly skills: Pick<SkillsApi, 'inject' | 'ended'>;
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly sessions: Pick<SessionsApi, 'target'>;
  /** Begins the conversation anew when its agent's policy says so; costs nothing without a policy. */
  readonly applyResetPolicy: (target: ConversationTarget, agent: Agent) => Promise<boolean>;
  /** Messages were stored, so that they come into the index some time later. */
  readonly noticeMessages: () => void;
  readonly context: Pick<ContextApi, 'prepare' | 'afterTurn'>;
  /** Tokens that messages may have in a call of the first of these models. */
  readonly roomFor: (agent: Agent, models: readonly ModelInfo[], tools: readonly Tool[], system: readonly string[]) => number;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  /** Waits for the conversation's lane and a place among the agent's turns, then runs. */
  readonly inLane: <T>(
    place: {
      readonly target: ConversationTarget;
      readonly agent: Agent;
      /** False for a completion of `/v1`, which is no conversation that anybody can find. */
      readonly kept: boolean;
      readonly signal: AbortSignal;
      /** Work whose turn may have left the lane, and comes back; of other work fails with `LaneKeptError` while a lane is kept. A full lane is a `LaneFullError`. */
      readonly workId?: string;
      /** Counts elsewhere, and not among the turns of its agent: what waits for it may hold one of their places. */
      readonly delegated?: boolean;
    },
    run: () => Promise<T>,
  ) => Promise<T>;
  readonly queued: () => number;
  readonly suspendWork: Operation<WorkClaim & { readonly wait: WorkWait; readonly atMs: number }, boolean>;
  /** Work waits behind a conversation from here on; it is resumed at once when that was freed meanwhile. */
  readonly behind: (conversationRef: string) => Promise<void>;
  /** Parts of the system prompt of an agent, the stable ones first. */
  readonly systemPrompt: (agent: Agent, tools: readonly Tool[], about: PromptAbout) => readonly string[];
  /** Looks whether files that belong to the prompt changed; undefined: nothing to wait for, as nearly always. */
  readonly refreshPrompt: (agent: Agent) => Promise<void> | undefined;
  /** Fences text that did not come from the operator, the same text always in the same way. */
  readonly fence: (text: string, label: FenceLabel) => string;
  /** Looks at outside text and announces what looks like an injection; it never changes the text. */
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
  /** Tools that the policies of agent and origin leave, and the one beside them where there is one. */
  readonly toolsFor: (agent: Agent, origin: TurnOrigin, policy?: ToolPolicy, bounds?: ToolBounds) => readonly Tool[];
  readonly v1Tools: 'agent' | 'none';
  /** Names of models that `/v1` requests may use in place of those of the catalog. */
  readonly modelAliases: ModelAliases;
  /** Why no turn may run at all, after repeated crashes. */
  readonly refuse: string | undefined;
}

/** Of a turn that somebody asked for: it begins a chain of background turns. */
const attendedRights: BackgroundRights = { chain: 0 };

/** A turn of a conversation that is kept, with everything known that is not looked up in it. */
interface Conversing {
  readonly target: ConversationTarget;
  readonly agent: Agent;
  readonly models: readonly ModelInfo[];
  readonly message: string;
  readonly attached: readonly MessageAttachment[];
  readonly origin: TurnOrigin;
  readonly locale?: string | undefined;
  readonly background?: BackgroundRights;
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
    // Most turns want nothing but text.
    return media.size === 0 && asked === undefined ? candidates : fittingModels(candidates, { media, mediaParam, asked }, deps.models.unsupported);
  }

  /** A turn whose messages are kept; the caller holds the conversation's lane. */
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
    const room = deps.roomFor(agent, models, tools, system);
    const about = { ref: target.ref, agent, principalId: target.principalId, room };
    // Both look for what bears on the question, at the same time; nothing is asked by what comes from the background.
    const isAsked = turn.origin !== 'background' && !light;
    const remembering = !isAsked
      ? undefined
      : deps.memory.recall(
          { agentId: agent.id, principalId: target.principalId, conversationRef: target.ref, question: message, room, signal: call.signal },
          agent.config,
          authority,
        );
    const skills = isAsked ? deps.skills.inject({ agent, question: message, origin: authority, room }) : undefined;
    const limit = durable?.turn.historyTurns;
    const all = limit === 0 ? nothingSaid : await deps.context.prepare({ ...about, question: message });
    const past = limit === undefined ? all : lastExchanges(all, limit);
    const remembered = remembering === undefined ? undefined : await remembering;
    const input = models[0]?.input ?? ['text'];
    const history = past.attached.length === 0 ? past.messages : await attachments.restore(past.messages, past.attached, { input, beside: attached });
    const inspected = { agentId: agent.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
    if (turn.origin !== 'background') deps.inspect(message, { source: 'user_input', ...inspected });
    const inspectFile = (text: string) => deps.inspect(text, { source: 'external_content', ...inspected });
    const outside = durable?.turn.fenced;
    if (outside !== undefined) inspectFile(outside.text);
    const text =
      outside === undefined ? message : `${message}\n\n${deps.fence(outside.text, { source: outside.source, clean: outside.clean === true })}`;
    // What was found goes with the question and is not kept, so that what was sent before stays the same from turn to turn.
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

  /** Runs in the lane of the conversation, as a turn that can be stopped from here on. */
  function inLane<T>(
    place: Omit<Parameters<TurnsDeps['inLane']>[0], 'signal'>,
    call: CallContext,
    run: (admitted: Admitted) => Promise<T>,
  ): Promise<T> {
    return runs.admit({ agentId: place.agent.id, conversationRef: place.target.ref }, call, (admitted) =>
      deps.inLane({ ...place, signal: admitted.controller.signal }, () => run(admitted)),
    );
  }

  const reenter: Reenter = async ({ target, begunBy, chain, rootRunId, take }, call) => {
    refuseAfterCrashes();
    return inLane({ target, agent: deps.agents.usable(target.agentId, call), kept: true }, call, async (admitted) => {
      const agent = deps.agents.usable(target.agentId, call);
      const models = modelsFor(agent, deps.models);
      const news = take();
      if (news === undefined) return undefined;
      const { taskIds: ids, text: message } = news;
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

  /** Waits for the lane of a piece of work; `admit` gives its agent as it is by then. */
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
      if (error instanceof LaneFullError) return await waitForLane(turn, waitForRoom(turn.target, error), call);
      if (!(error instanceof LaneKeptError)) throw error;
      const { ref } = turn.target;
      const outcome = await waitForLane(turn, { kind: 'conversation', subject: ref, lookMs: lookBehindMs }, call);
      if (outcome.settled) await deps.behind(ref);
      return outcome;
    }
  }

  /** Work that cannot enter its lane now holds no slot meanwhile, and uses up no attempt. */
  async function waitForLane(
    { target, workId: id, owner, fence }: Pick<DurableTurn, 'target' | 'workId' | 'owner' | 'fence'>,
    { lookMs, ...what }: LaneWait,
    { traceId }: CallContext,
  ): Promise<DurableOutcome> {
    const atMs = deps.clock.now();
    const wait = { ...what, untilMs: atMs + longestBehindMs, lookAtMs: atMs + lookMs };
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
        (call.identity.compat?.tools ?? deps.v1Tools) === 'none' ? [] : toolsBeside(deps.toolsFor(agent, 'v1'), clientTools, options?.toolChoice);
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

    tell: async (turn, take, call) =>
      inLaneOf(turn, call, async (admitted, admit) => {
        const news = await take();
        return news === undefined ? undefined : converseDurably({ ...turn, ...news }, admit(), admitted);
      }),

    async execute({ message, address, origin = 'rpc', locale, attachments: ids = [], alongside }, call, sink) {
      refuseAfterCrashes();
      const target = await deps.sessions.target(address, call);
      const asked = deps.agents.usable(target.agentId, call);
      const attached = ids.length === 0 ? [] : await attachments.find(ids, call);
      const modelsOf = (agent: Agent) => fit(modelsFor(agent, deps.models), mediaOf(attached), 'attachments');
      // Known before it waits: no model for what is attached.
      if (attached.length > 0) modelsOf(asked);
      return inLane({ target, agent: asked, kept: true }, call, async (admitted) => {
        // It may have waited: what was suspended, deleted or changed meanwhile holds for it too.
        const agent = deps.agents.usable(target.agentId, call);
        const models = modelsOf(agent);
        await deps.applyResetPolicy(target, agent);
        return converse({ target, agent, models, message, attached, origin, locale, background: attendedRights, alongside }, admitted, sink);
      });
    },

    async complete(request, call, sink) {
      const { chosen, named, fenced, prepare } = await admitCompletion(request, call);
      const target = await deps.sessions.target(completionAddress(request, named.id), call);
      const about = { agentId: named.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
      // System texts are the instructions of the authenticated client itself.
      for (const { role, content } of request.messages)
        if (role !== 'system' && role !== 'developer')
          deps.inspect(content, { source: role === 'user' ? 'user_input' : 'external_content', ...about });
      const prepared = prepare(named);
      return inLane({ target, agent: named, kept: false }, call, async (admitted) => {
        // It may have waited for its agent's group: what was suspended, deleted or changed meanwhile holds for it too.
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

/** As long as a run may wait for an approval. */
const longestBehindMs = 7 * 86_400_000;
/** A hint that was lost costs no more. */
const lookBehindMs = 60 * 60_000;
/** Queues are rarely served in less, and a long backlog is not tried all the time. */
const lookForRoomMs = 15_000;

type LaneWait = Pick<WorkWait, 'kind' | 'subject' | 'cause'> & { readonly lookMs: number };

function waitForRoom({ ref, agentId }: ConversationTarget, { full, message }: LaneFullError): LaneWait {
  const what = full === 'lane' ? { kind: 'conversation' as const, subject: ref } : { kind: 'agent' as const, subject: agentId };
  return { ...what, cause: message, lookMs: lookForRoomMs };
}

const nothingSaid: PreparedContext = { messages: [], attached: [], hasNotes: false, tokens: 0, behind: false, tainted: false };

function answerLength({ maxTokens, maxTokensIsBound }: CompletionRequest, model: ModelInfo | undefined): number | undefined {
  return maxTokensIsBound === true && maxTokens !== undefined && model !== undefined ? Math.min(maxTokens, model.maxTokens) : maxTokens;
}

/** The constants of http-gateway.md §2.5; the peer makes every completion a conversation of its own. */
function completionAddress(request: CompletionRequest, agentId: string): ConversationAddress {
  return { agentId, sessionKey: { userId: 'compat-api', channelId: request.channelId ?? 'compat', peerId: request.completionId } };
}
