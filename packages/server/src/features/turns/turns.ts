import type { AgentConfig, EventPayload, TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import { newId } from '../../kernel/ids.ts';
import { Roster } from '../../kernel/roster.ts';
import type { ModelInfo, ModelMessage, ModelOptions, ToolSpec } from '../../llm/model.ts';
import type { Models } from '../../llm/models.ts';
import type { Asked } from '../../llm/unsupported.ts';
import { toolsBeside } from '../../runtime/client-tools.ts';
import type { FenceLabel } from '../../runtime/fence.ts';
import type { Tool } from '../../runtime/tool.ts';
import type { RunTurn, TurnInput, TurnSink } from '../../runtime/turn.ts';
import type { Agent, AgentsApi } from '../agents/api.ts';
import type { ConversationTarget, SessionsApi } from '../sessions/api.ts';
import type { MediaApi } from '../media/api.ts';
import type { Alongside, CompletionRequest, ConversationAddress, TurnOutcome, TurnsApi } from './api.ts';
import { createAnnouncer } from './announce.ts';
import { createAttachments, mediaOf } from './attachments.ts';
import { openRow, type Question, toCommit, toOutcome, type TurnStart } from './commit.ts';
import { checkCompletion, fenceCompletion } from './completion.ts';
import { fittingModels, mediaIn } from './fitting-models.ts';
import { modelsFor, resolveTarget } from './resolve-target.ts';
import { abortOpenTurns, type TurnCommit, type TurnOpening } from './store.ts';

export interface TurnsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly sessions: SessionsApi;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly runTurn: RunTurn;
  readonly openTurn: Operation<TurnOpening, void>;
  readonly commitTurn: Operation<TurnCommit, { readonly created: boolean }>;
  /** Waits for the conversation's lane and a place among the agent's turns, then runs. */
  readonly inLane: <T>(
    place: { readonly ref: string; readonly agent: Agent; readonly principalId: string; readonly signal: AbortSignal },
    run: () => Promise<T>,
  ) => Promise<T>;
  readonly queued: () => number;
  /** Parts of the system prompt of an agent, the stable ones first; `locale` is that of the person who writes. */
  readonly systemPrompt: (agent: Agent, tools: readonly Tool[], locale?: string) => readonly string[];
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
  /** Tools that the policy of agent and origin leaves. */
  readonly toolsFor: (agent: Agent, origin: TurnOrigin) => readonly Tool[];
  readonly v1Tools: 'agent' | 'none';
  /** Why no turn may run at all, after repeated crashes. */
  readonly refuse: string | undefined;
}

interface Run {
  readonly target: ConversationTarget;
  readonly agent: Agent;
  readonly origin: TurnOrigin;
  readonly models: readonly ModelInfo[];
  readonly tools: readonly Tool[];
  readonly system: readonly string[];
  /** Earlier messages, and those that the request brought. */
  readonly history: readonly ModelMessage[];
  readonly brought: readonly ModelMessage[];
  readonly question: Question;
  /** Whether the question and what the turn adds are kept. */
  readonly kept: boolean;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly clientTools?: readonly ToolSpec[] | undefined;
  readonly options?: ModelOptions | undefined;
  readonly alongside?: Alongside | undefined;
}

export interface Turns {
  readonly api: TurnsApi;
  /** At start: rows left open by a process that died become `aborted`. */
  recover(): Promise<number>;
  /** Aborts what still runs; used when the time to drain is over. */
  abortAll(): void;
}

export function createTurns(deps: TurnsDeps): Turns {
  const running = new Roster<AbortController>();
  const announce = createAnnouncer(deps);
  const attachments = createAttachments(deps);

  async function run(turn: Run, call: CallContext, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const { target, agent, origin, alongside } = turn;
    const turnId = newId('tn');
    const startedAtMs = deps.clock.now();
    const controller = new AbortController();
    const abort = () => controller.abort(call.signal.reason);
    if (call.signal.aborted) abort();
    else call.signal.addEventListener('abort', abort, { once: true });
    const leave = running.join(controller);
    try {
      const about = { conversationRef: target.ref, sessionKey: target.sessionKey, agentId: agent.id, turnId, traceId: call.traceId, origin };
      announce.received(about, target.principalId, turn.question.text, call.identity.principalId, startedAtMs);
      const row: TurnStart = {
        id: turnId,
        conversationRef: target.ref,
        sessionKey: target.sessionKey,
        agentId: agent.id,
        principalId: target.principalId,
        origin,
        traceId: call.traceId,
        startedAtMs,
      };
      const input: TurnInput = {
        turnId,
        traceId: call.traceId,
        agentId: agent.id,
        agent: interactive(agent.config),
        origin,
        models: turn.models,
        system: turn.system,
        messages: turn.history.length === 0 ? turn.brought : [...turn.history, ...turn.brought],
        tools: turn.tools,
        workspaceDir: agent.workspaceDir,
        signal: controller.signal,
        beforeOnce: () =>
          deps.db.write(deps.openTurn, { turn: { ...row, ...openRow }, alongside: alongside?.opened?.({ conversationRef: target.ref }) }),
        ...(turn.temperature !== undefined && { temperature: turn.temperature }),
        ...(turn.maxTokens !== undefined && { maxTokens: turn.maxTokens }),
        ...(turn.clientTools !== undefined && { clientTools: turn.clientTools }),
        ...(turn.options !== undefined && { options: turn.options }),
      };
      const result = await deps.runTurn(input, announce.streaming(sink, about, target.principalId));
      const outcome = toOutcome(row, result);
      const commit = toCommit(row, result, deps.clock.now(), turn.kept ? turn.question : undefined);
      const rows = alongside?.ended?.(outcome, result.messages, turn.brought);
      const { created } = await deps.db.write(deps.commitTurn, rows === undefined ? commit : { ...commit, alongside: rows });
      announce.used(result.calls, about, target.principalId);
      announce.ended(about, target, result, created);
      return outcome;
    } finally {
      leave();
      call.signal.removeEventListener('abort', abort);
    }
  }

  function refuseAfterCrashes(): void {
    if (deps.refuse !== undefined) throw new AppError('unavailable', deps.refuse);
  }

  function fit(candidates: readonly ModelInfo[], media: ReturnType<typeof mediaIn>, mediaParam: string, asked?: Asked): readonly ModelInfo[] {
    // Most turns want nothing but text.
    return media.size === 0 && asked === undefined ? candidates : fittingModels(candidates, { media, mediaParam, asked }, deps.models.unsupported);
  }

  const api: TurnsApi = {
    async execute({ message, address, origin = 'rpc', locale, attachments: ids = [], alongside }, call, sink) {
      refuseAfterCrashes();
      const target = await deps.sessions.target(address, call);
      const admitted = deps.agents.usable(target.agentId, call);
      const attached = ids.length === 0 ? [] : await attachments.find(ids, call);
      const modelsOf = (agent: Agent) => fit(modelsFor(agent, deps.models), mediaOf(attached), 'attachments');
      // Known before it waits: no model for what is attached.
      if (attached.length > 0) modelsOf(admitted);
      return deps.inLane({ ref: target.ref, agent: admitted, principalId: target.principalId, signal: call.signal }, async () => {
        // It may have waited: what was suspended, deleted or changed meanwhile holds for it too.
        const agent = deps.agents.usable(target.agentId, call);
        const models = modelsOf(agent);
        const past = await deps.sessions.history(target.ref);
        const input = models[0]?.input ?? ['text'];
        const history =
          past.attached.length === 0 ? past.messages : await attachments.restore(past.messages, past.attached, { input, beside: attached });
        const tools = deps.toolsFor(agent, origin);
        const inspected = { agentId: agent.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
        deps.inspect(message, { source: 'user_input', ...inspected });
        const inspectFile = (text: string) => deps.inspect(text, { source: 'external_content', ...inspected });
        const asked: ModelMessage =
          attached.length === 0 ? { role: 'user', content: message } : await attachments.attach(message, attached, inspectFile);
        return run(
          {
            target,
            agent,
            origin,
            models: past.attached.length === 0 ? models : fit(models, mediaIn(history), 'attachments'),
            tools,
            system: deps.systemPrompt(agent, tools, locale),
            history,
            brought: [asked],
            question: { text: message, attachments: attached },
            kept: true,
            alongside,
          },
          call,
          sink,
        );
      });
    },

    async complete(request, call, sink) {
      refuseAfterCrashes();
      checkCompletion(request);
      const chosen = resolveTarget(request.model, deps.agents, deps.models, call.identity.agents);
      const admitted = deps.agents.usable(chosen.agentId, call);
      const target = await deps.sessions.target(completionAddress(request, admitted.id), call);
      const { history = [], clientTools, options } = request;
      const about = { agentId: admitted.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
      for (const { role, content } of request.messages)
        deps.inspect(content, { source: role === 'user' ? 'user_input' : 'external_content', ...about });
      const fenced = fenceCompletion(request, deps.fence);
      const media = mediaIn([...history, ...fenced.messages]);
      const asked =
        options === undefined && clientTools === undefined ? undefined : { options, tools: clientTools !== undefined && clientTools.length > 0 };
      const prepare = (agent: Agent) => {
        const tools = deps.v1Tools === 'none' ? [] : toolsBeside(deps.toolsFor(agent, 'v1'), clientTools, options?.toolChoice);
        const models = fit(modelsFor(agent, deps.models, chosen.model), media, 'messages', asked);
        return { agent, tools, models, system: [...deps.systemPrompt(agent, tools), ...fenced.system] };
      };
      const prepared = prepare(admitted);
      return deps.inLane({ ref: target.ref, agent: admitted, principalId: target.principalId, signal: call.signal }, async () => {
        // It may have waited for its agent's group: what was suspended, deleted or changed meanwhile holds for it too.
        const agent = deps.agents.usable(chosen.agentId, call);
        return run(
          {
            ...(agent === admitted ? prepared : prepare(agent)),
            target,
            origin: 'v1',
            history,
            brought: fenced.messages,
            question: { text: fenced.userText },
            kept: false,
            temperature: request.temperature,
            maxTokens: request.maxTokens,
            clientTools,
            options,
            alongside: request.alongside,
          },
          call,
          sink,
        );
      });
    },

    counts: () => ({ running: running.size, queued: deps.queued() }),
  };

  return {
    api,
    recover: () => deps.db.write(abortOpenTurns, { atMs: deps.clock.now() }),
    abortAll() {
      for (const controller of running.members()) controller.abort(new AppError('unavailable', 'The daemon is stopping'));
    },
  };
}

/** The configuration as conversations see it: a deadline of their own wins over the common one. */
function interactive(config: AgentConfig): AgentConfig {
  const timeoutMs = config.operationModels.interactive?.timeoutMs;
  return timeoutMs === undefined ? config : { ...config, modelTimeoutMs: timeoutMs };
}

/** The constants of http-gateway.md §2.5; the peer makes every completion a conversation of its own. */
function completionAddress(request: CompletionRequest, agentId: string): ConversationAddress {
  return { agentId, sessionKey: { userId: 'compat-api', channelId: request.channelId ?? 'compat', peerId: request.completionId } };
}
