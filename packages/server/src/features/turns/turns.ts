import type { AgentConfig, EventPayload, TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import { newId } from '../../kernel/ids.ts';
import { Roster } from '../../kernel/roster.ts';
import type { ModelInfo, ModelMessage } from '../../llm/model.ts';
import type { Models } from '../../llm/models.ts';
import type { Tool } from '../../runtime/tool.ts';
import type { RunTurn, TurnInput, TurnSink } from '../../runtime/turn.ts';
import type { Agent, AgentsApi } from '../agents/api.ts';
import type { ConversationTarget, SessionsApi } from '../sessions/api.ts';
import type { CompletionRequest, ConversationAddress, TurnOutcome, TurnsApi } from './api.ts';
import { createAnnouncer } from './announce.ts';
import { openRow, toCommit, tokensOf, type TurnStart } from './commit.ts';
import { modelsFor, resolveTarget } from './resolve-target.ts';
import { abortOpenTurns, openTurn, type TurnCommit } from './store.ts';

export interface TurnsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly sessions: SessionsApi;
  readonly runTurn: RunTurn;
  readonly commitTurn: Operation<TurnCommit, { readonly created: boolean }>;
  /** Waits for the conversation's lane and a place among the agent's turns, then runs. */
  readonly inLane: <T>(
    place: { readonly ref: string; readonly agent: Agent; readonly principalId: string; readonly signal: AbortSignal },
    run: () => Promise<T>,
  ) => Promise<T>;
  readonly queued: () => number;
  /** Parts of the system prompt of an agent, the stable ones first. */
  readonly systemPrompt: (agent: Agent, tools: readonly Tool[], origin: TurnOrigin) => readonly string[];
  /** Fences text of `/v1` that did not come from the operator. */
  readonly fenceV1: (text: string, label: 'system' | 'assistant') => string;
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
  readonly messages: readonly ModelMessage[];
  /** The text that this turn answers. */
  readonly userText: string;
  /** Whether the messages of the turn are kept. */
  readonly kept: boolean;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
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

  async function run(turn: Run, call: CallContext, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const { target, agent, origin } = turn;
    const turnId = newId('tn');
    const startedAtMs = deps.clock.now();
    const controller = new AbortController();
    const abort = () => controller.abort(call.signal.reason);
    if (call.signal.aborted) abort();
    else call.signal.addEventListener('abort', abort, { once: true });
    const leave = running.join(controller);
    try {
      const about = { conversationRef: target.ref, sessionKey: target.sessionKey, agentId: agent.id, turnId, traceId: call.traceId, origin };
      announce.received(about, target.principalId, turn.userText, call.identity.principalId, startedAtMs);
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
        messages: turn.messages,
        tools: turn.tools,
        workspaceDir: agent.workspaceDir,
        signal: controller.signal,
        beforeOnce: () => deps.db.write(openTurn, { ...row, ...openRow }),
        ...(turn.temperature !== undefined && { temperature: turn.temperature }),
        ...(turn.maxTokens !== undefined && { maxTokens: turn.maxTokens }),
      };
      const result = await deps.runTurn(input, announce.streaming(sink, about, target.principalId));
      const { created } = await deps.db.write(deps.commitTurn, toCommit(row, result, deps.clock.now(), turn.kept ? turn.userText : undefined));
      announce.used(result.calls, about, target.principalId);
      announce.ended(about, target, result, created);
      return {
        finishReason: result.finishReason,
        text: result.text,
        tokensUsed: tokensOf(result.calls),
        ...(result.failure !== undefined && { failure: result.failure }),
        conversationRef: target.ref,
        sessionKey: target.sessionKey,
        agentId: agent.id,
        turnId,
        traceId: call.traceId,
      };
    } finally {
      leave();
      call.signal.removeEventListener('abort', abort);
    }
  }

  function refuseAfterCrashes(): void {
    if (deps.refuse !== undefined) throw new AppError('unavailable', deps.refuse);
  }

  const api: TurnsApi = {
    async execute({ message, address }, call, sink) {
      refuseAfterCrashes();
      const target = await deps.sessions.target(address, call);
      const admitted = deps.agents.usable(target.agentId, call);
      return deps.inLane({ ref: target.ref, agent: admitted, principalId: target.principalId, signal: call.signal }, async () => {
        // It may have waited: what was suspended, deleted or changed meanwhile holds for it too.
        const agent = deps.agents.usable(target.agentId, call);
        const history = await deps.sessions.history(target.ref);
        const tools = deps.toolsFor(agent, 'rpc');
        const inspected = { agentId: agent.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
        deps.inspect(message, { source: 'user_input', ...inspected });
        const system = deps.systemPrompt(agent, tools, 'rpc');
        return run(
          {
            target,
            agent,
            origin: 'rpc',
            models: modelsFor(agent, deps.models),
            tools,
            system,
            messages: [...history, { role: 'user', content: message }],
            userText: message,
            kept: true,
          },
          call,
          sink,
        );
      });
    },

    async complete(request, call, sink) {
      refuseAfterCrashes();
      const chosen = resolveTarget(request.model, deps.agents, deps.models, call.identity.agents);
      const agent = deps.agents.usable(chosen.agentId, call);
      const target = await deps.sessions.target(completionAddress(request, agent.id), call);
      const tools = deps.v1Tools === 'none' ? [] : deps.toolsFor(agent, 'v1');
      const about = { agentId: agent.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
      const system = [...deps.systemPrompt(agent, tools, 'v1')];
      const messages: ModelMessage[] = [];
      let userText = '';
      for (const { role, content } of request.messages) {
        deps.inspect(content, { source: role === 'user' ? 'user_input' : 'external_content', ...about });
        if (role === 'system') system.push(deps.fenceV1(content, 'system'));
        else if (role === 'assistant') messages.push({ role, content: deps.fenceV1(content, 'assistant') });
        else messages.push({ role, content: (userText = content) });
      }
      const turn: Run = {
        target,
        agent,
        origin: 'v1',
        models: modelsFor(agent, deps.models, chosen.model),
        tools,
        system,
        messages,
        userText,
        kept: false,
        temperature: request.temperature,
        maxTokens: request.maxTokens,
      };
      return deps.inLane({ ref: target.ref, agent, principalId: target.principalId, signal: call.signal }, () => run(turn, call, sink));
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
  return { agentId, sessionKey: { userId: 'compat-api', channelId: 'compat', peerId: request.completionId } };
}
