import type { AgentConfig, TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import { newId } from '../../kernel/ids.ts';
import { Roster } from '../../kernel/roster.ts';
import type { ModelInfo, ModelMessage, ModelOptions, ToolSpec } from '../../llm/model.ts';
import type { Tool } from '../../runtime/tool.ts';
import type { RunTurn, TurnInput, TurnSink } from '../../runtime/turn.ts';
import type { Agent } from '../agents/api.ts';
import type { ReserveStore, TurnBudget } from '../budgets/api.ts';
import type { Recalled, RecallApi } from '../memory/api.ts';
import type { ConversationTarget } from '../sessions/api.ts';
import type { Alongside, TurnOutcome } from './api.ts';
import { createAnnouncer } from './announce.ts';
import { type Question, toCommit, toOutcome, type TurnStart } from './commit.ts';
import { OpenRow } from './open-row.ts';
import { putInFront } from './in-front.ts';
import type { TurnCommit, TurnOpening } from './store.ts';

export interface RunDeps {
  readonly memory: Pick<RecallApi, 'attribute'>;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly runTurn: RunTurn;
  readonly openTurn: Operation<TurnOpening, void>;
  readonly commitTurn: Operation<TurnCommit, { readonly created: boolean }>;
  /** The caps that a turn of the agent is held against. */
  readonly budgetOf: (agentId: string, store: ReserveStore) => TurnBudget;
}

/** A turn with everything decided: what is left is to run it and to write it down. */
export interface Run {
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
  /** What is remembered about the question: sent in front of it, never kept. */
  readonly remembered?: Recalled | undefined;
  /** Whether the question and what the turn adds are kept. */
  readonly kept: boolean;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly clientTools?: readonly ToolSpec[] | undefined;
  readonly options?: ModelOptions | undefined;
  readonly alongside?: Alongside | undefined;
}

export interface Runs {
  /** Runs one turn, commits it and announces it; the caller holds the conversation's lane. */
  run(turn: Run, call: CallContext, sink: TurnSink | undefined): Promise<TurnOutcome>;
  running(): number;
  /** Aborts what still runs; used when the time to drain is over. */
  abortAll(): void;
}

export function createRuns(deps: RunDeps): Runs {
  const controllers = new Roster<AbortController>();
  const announce = createAnnouncer(deps);

  async function run(turn: Run, call: CallContext, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const { target, agent, origin, alongside } = turn;
    const turnId = newId('tn');
    const startedAtMs = deps.clock.now();
    const controller = new AbortController();
    const abort = () => controller.abort(call.signal.reason);
    if (call.signal.aborted) abort();
    else call.signal.addEventListener('abort', abort, { once: true });
    const leave = controllers.join(controller);
    try {
      const about = { conversationRef: target.ref, sessionKey: target.sessionKey, agentId: agent.id, turnId, traceId: call.traceId, origin };
      announce.received(about, target.principalId, turn.question.text, call.identity.principalId, startedAtMs);
      const start: TurnStart = {
        id: turnId,
        conversationRef: target.ref,
        sessionKey: target.sessionKey,
        agentId: agent.id,
        principalId: target.principalId,
        origin,
        traceId: call.traceId,
        startedAtMs,
      };
      const row = new OpenRow(deps, start, alongside);
      const { remembered } = turn;
      const sent = remembered === undefined ? turn.brought : putInFront(turn.brought, remembered.text);
      const input: TurnInput = {
        turnId,
        traceId: call.traceId,
        agentId: agent.id,
        agent: interactive(agent.config),
        origin,
        models: turn.models,
        system: turn.system,
        messages: turn.history.length === 0 ? sent : [...turn.history, ...sent],
        tools: turn.tools,
        workspaceDir: agent.workspaceDir,
        signal: controller.signal,
        beforeOnce: () => row.beforeOnce(),
        budget: deps.budgetOf(agent.id, row),
        ...(turn.temperature !== undefined && { temperature: turn.temperature }),
        ...(turn.maxTokens !== undefined && { maxTokens: turn.maxTokens }),
        ...(turn.clientTools !== undefined && { clientTools: turn.clientTools }),
        ...(turn.options !== undefined && { options: turn.options }),
      };
      const result = await deps.runTurn(input, announce.streaming(sink, about, target.principalId));
      const outcome = toOutcome(start, result);
      const commit = toCommit(start, result, deps.clock.now(), turn.kept ? turn.question : undefined);
      const rows = alongside?.ended?.(outcome, result.messages, turn.brought);
      const { created } = await deps.db.write(deps.commitTurn, rows === undefined ? commit : { ...commit, alongside: rows });
      if (remembered !== undefined) deps.memory.attribute({ agentId: agent.id, ids: remembered.ids }, result);
      announce.used(result.calls, about, target.principalId);
      announce.ended(about, target, result, created);
      return outcome;
    } finally {
      leave();
      call.signal.removeEventListener('abort', abort);
    }
  }

  return {
    run,
    running: () => controllers.size,
    abortAll() {
      for (const controller of controllers.members()) controller.abort(new AppError('unavailable', 'The daemon is stopping'));
    },
  };
}

/** The configuration as conversations see it: a deadline of their own wins over the common one. */
function interactive(config: AgentConfig): AgentConfig {
  const timeoutMs = config.operationModels.interactive?.timeoutMs;
  return timeoutMs === undefined ? config : { ...config, modelTimeoutMs: timeoutMs };
}
