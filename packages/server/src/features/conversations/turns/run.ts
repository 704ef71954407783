import type { AgentConfig, TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallingTurn } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { ModelInfo, ModelMessage, ModelOptions, ToolSpec } from '../../../llm/model.ts';
import type { BackgroundAuthority } from '../../../runtime/background.ts';
import { isTainted } from '../../../runtime/taint.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { authorityOf } from '../../../runtime/tool-policy.ts';
import type { RunTurn, TurnInput, TurnResult, TurnSink } from '../../../runtime/turn.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { TurnAutonomy } from '../../delegation/autonomy/api.ts';
import type { BackgroundApi } from '../../environment/background/api.ts';
import type { ReserveStore, TurnBudget } from '../../access/budgets/api.ts';
import type { Recalled, RecallApi } from '../../knowledge/memory/api.ts';
import type { ConversationTarget } from '../sessions/api.ts';
import type { InjectedSkills, SkillsApi } from '../../knowledge/skills/api.ts';
import type { Alongside, AlongsideRows, DurableTurn, TurnOutcome } from './api.ts';
import { type Admissions, type Admitted, createAdmissions, isMeant, type StopScope } from './admission.ts';
import { createAnnouncer } from './announce.ts';
import type { DurableRun } from './durable/durable.ts';
import { type Question, toCommit, toOutcome, type TurnStart } from './durable/commit.ts';
import { OpenRow } from './durable/open-row.ts';
import { putInFront } from './messages/in-front.ts';
import type { TurnCommit, TurnOpening } from './store.ts';

export interface RunDeps {
  readonly memory: Pick<RecallApi, 'attribute'>;
  readonly skills: Pick<SkillsApi, 'ended'>;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly runTurn: RunTurn;
  readonly openTurn: Operation<TurnOpening, void>;
  readonly commitTurn: Operation<TurnCommit, { readonly created: boolean }>;
  readonly background: Pick<BackgroundApi, 'reported' | 'release'>;
  readonly autonomy: TurnAutonomy;
  /** Returns the limits that apply to a turn of the agent. */
  readonly budgetOf: (agentId: string, store: ReserveStore, used?: { readonly tokens: number; readonly nano: number }) => TurnBudget;
}

/** A fully prepared turn, ready to run and to be stored. */
export interface Run {
  readonly target: ConversationTarget;
  readonly agent: Agent;
  readonly origin: TurnOrigin;
  readonly models: readonly ModelInfo[];
  readonly tools: readonly Tool[];
  readonly system: readonly string[];
  /** Earlier messages, and those of the request. */
  readonly history: readonly ModelMessage[];
  readonly brought: readonly ModelMessage[];
  /** Whether history and the messages of the request must be sent completely. */
  readonly whole?: boolean | undefined;
  readonly question: Question;
  /** Memories about the question, sent before it and never stored. */
  readonly remembered?: Recalled | undefined;
  /** Skills that match the question or that it calls, handled the same way. */
  readonly skills?: InjectedSkills | undefined;
  /** Whether the question and the turn's messages are stored. */
  readonly kept: boolean;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly clientTools?: readonly ToolSpec[] | undefined;
  readonly options?: ModelOptions | undefined;
  readonly alongside?: Alongside | undefined;
  /** Background permissions and authority of a stored turn. */
  readonly background?: BackgroundAuthority | undefined;
  /** Whether earlier turns have read untrusted text; set for stored turns. */
  readonly taintedBefore?: boolean | undefined;
  /** Present for a turn that survives its process and decides itself what is stored. */
  readonly durable?: DurableRun | undefined;
}

/** A running turn that is the root of the work it starts. */
export interface RootTurn {
  readonly rootRunId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
  readonly origin: TurnOrigin;
  readonly startedAtMs: number;
}

export interface Runs extends Pick<Admissions, 'admit'> {
  /** Runs, commits and announces one turn; the caller must hold the conversation's lane. Rejects when its token was revoked meanwhile. */
  run(turn: Run, admitted: Admitted, sink: TurnSink | undefined): Promise<TurnOutcome>;
  running(): number;
  /** Returns the running root turn of a root run. */
  rootTurn(rootRunId: string): RootTurn | undefined;
  /** Returns the running turns that are not sub-agent turns, newest first. */
  rootTurns(): readonly RootTurn[];
  /** Aborts the root's own turns. Sub-agent turns are stopped by their runner after their ends are committed. */
  abortRoot(rootRunId: string, reason: AppError): void;
  /**
   * Aborts the waiting and running turns within `scope`. Sub-agent turns acting for a token are left to the kill of their
   * roots, which are returned.
   */
  stop(scope: StopScope, reason: AppError): readonly string[];
  /** Aborts all waiting and running turns; used when the drain timeout has passed. */
  abortAll(): void;
}

export function createRuns(deps: RunDeps): Runs {
  const admissions = createAdmissions();
  const announce = createAnnouncer(deps);
  let count = 0;

  async function run(turn: Run, admitted: Admitted, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const { target, agent, origin, alongside, durable } = turn;
    const { call, controller } = admitted;
    const turnId = durable?.start.id ?? newId('tn');
    const startedAtMs = durable?.start.startedAtMs ?? deps.clock.now();
    const calling = callingTurn(turn, turnId);
    admitted.running = { turn, calling, startedAtMs };
    count += 1;
    try {
      const beginning = deps.autonomy.begin(calling);
      if (beginning !== undefined) await beginning;
      const about = { conversationRef: target.ref, sessionKey: target.sessionKey, agentId: agent.id, turnId, traceId: call.traceId, origin };
      if (durable?.isResumed !== true)
        announce.received(about, target.principalId, turn.question.text, origin === 'background' ? origin : call.identity.principalId, startedAtMs);
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
      const recalled = remembered === undefined ? turn.brought : putInFront(turn.brought, remembered.text);
      const sent = turn.skills === undefined ? recalled : putInFront(recalled, turn.skills.text);
      const input: TurnInput = {
        turnId,
        traceId: call.traceId,
        agentId: agent.id,
        agent: configOf(agent.config, durable?.turn),
        origin,
        models: turn.models,
        system: turn.system,
        messages: turn.history.length === 0 ? sent : [...turn.history, ...sent],
        ...(turn.whole === true && { whole: [...turn.history, ...turn.brought] }),
        tools: turn.tools,
        taintedBefore: turn.taintedBefore === true || durable?.isTainted === true,
        workspaceDir: agent.workspaceDir,
        conversationRef: target.ref,
        sessionKey: target.sessionKey,
        principalId: target.principalId,
        call: {
          ...call,
          agentCaller: { agentId: agent.id, principalId: target.principalId, conversationRef: target.ref, turn: calling },
        },
        signal: controller.signal,
        abort: (reason) => controller.abort(reason),
        ...(durable === undefined
          ? { beforeOnce: (reported: readonly string[]) => row.beforeOnce(reported) }
          : {
              ledger: durable.ledger,
              operation: durable.turn.operation,
              ...(durable.turn.authority !== undefined && { authority: durable.turn.authority }),
              ...(durable.turn.steering !== undefined && { steering: durable.turn.steering }),
            }),
        budget: deps.autonomy.capped(deps.budgetOf(agent.id, durable?.ledger ?? row, durable?.used), calling),
        ...(turn.background !== undefined && { background: turn.background }),
        ...(turn.temperature !== undefined && { temperature: turn.temperature }),
        ...(turn.maxTokens !== undefined && { maxTokens: turn.maxTokens }),
        ...(turn.clientTools !== undefined && { clientTools: turn.clientTools }),
        ...(turn.options !== undefined && { options: turn.options }),
      };
      // Another process may find different memories and notes for the same question.
      if (durable !== undefined && isTainted(sent, input)) durable.ledger.taint();
      const interrupted = durable?.interruptedResult(turn.models);
      const result = interrupted ?? withReason(await deps.runTurn(input, announce.streaming(sink, about, target.principalId)), admitted.stoppedBy);
      const outcome = durable === undefined ? toOutcome(start, result) : durable.outcomeOf(result);
      const stored =
        durable === undefined
          ? await commitBound(turn, start, result, outcome)
          : await durable.commit(result, outcome, turn.question, controller.signal);
      if (stored === undefined) return outcome;
      const { created } = stored;
      if ('waits' in stored) {
        announce.used(result.calls, about, target.principalId);
        return outcome;
      }
      deps.skills.ended({ agentId: agent.id, turnId, principalId: target.principalId, injected: turn.skills }, result);
      if (remembered !== undefined) deps.memory.attribute({ agentId: agent.id, ids: remembered.ids }, result);
      announce.used(result.calls, about, target.principalId);
      announce.ended(about, target, result, created);
      // The result must not reach a caller whose token was revoked.
      if (durable === undefined && admitted.stoppedBy?.code === 'unauthenticated') throw admitted.stoppedBy;
      return outcome;
    } finally {
      admitted.running = undefined;
      count -= 1;
      deps.autonomy.end(calling);
    }
  }

  function commitBound(turn: Run, start: TurnStart, result: TurnResult, outcome: TurnOutcome): Promise<{ readonly created: boolean }> {
    const commit = toCommit(start, result, deps.clock.now(), turn.kept ? turn.question : undefined);
    const rows = withReportedTasks(turn.alongside?.ended?.(outcome, result.messages, turn.brought), result.reported);
    return committed(rows === undefined ? commit : { ...commit, alongside: rows }, result.reported);
  }

  /** Commits the turn; background results count as reported only if the commit succeeds. */
  async function committed(commit: TurnCommit, reported: readonly string[] | undefined): Promise<{ readonly created: boolean }> {
    if (reported === undefined) return deps.db.write(deps.commitTurn, commit);
    try {
      const stored = await deps.db.write(deps.commitTurn, commit);
      deps.background.reported(reported);
      return stored;
    } catch (error) {
      deps.background.release(reported);
      throw error;
    }
  }

  const rootTurns = (): readonly RootTurn[] =>
    admissions
      .members()
      .flatMap(({ running }) => {
        if (running === undefined || running.calling.run !== undefined) return [];
        const { turn, calling, startedAtMs } = running;
        const { target, agent, origin } = turn;
        return [
          { rootRunId: calling.rootRunId, agentId: agent.id, principalId: target.principalId, conversationRef: target.ref, origin, startedAtMs },
        ];
      })
      .toSorted((a, b) => b.startedAtMs - a.startedAtMs);

  const ofRoot = (rootRunId: string) =>
    admissions.members().filter(({ running }) => running?.calling.rootRunId === rootRunId && running.calling.run === undefined);

  return {
    admit: admissions.admit,
    run,
    running: () => count,
    rootTurn: (rootRunId) => rootTurns().find((turn) => turn.rootRunId === rootRunId),
    rootTurns,
    abortRoot(rootRunId, reason) {
      for (const admitted of ofRoot(rootRunId)) admissions.stop(admitted, reason);
    },
    stop(scope, reason) {
      const roots = new Set<string>();
      for (const admitted of admissions.members()) {
        if (!isMeant(admitted, scope)) continue;
        const calling = admitted.running?.calling;
        if ('tokenId' in scope && calling?.run !== undefined) roots.add(calling.rootRunId);
        else admissions.stop(admitted, reason);
      }
      return [...roots];
    },
    abortAll() {
      for (const admitted of admissions.members()) admissions.stop(admitted, new AppError('unavailable', 'The daemon is stopping'));
    },
  };
}

/** Adds the reason of the stop to the result of a stopped turn. */
function withReason(result: TurnResult, stoppedBy: AppError | undefined): TurnResult {
  const { finishReason, failure } = result;
  return stoppedBy === undefined || finishReason !== 'aborted' || failure === undefined
    ? result
    : { ...result, failure: { ...failure, message: stoppedBy.message } };
}

function callingTurn({ target, origin, background, durable }: Run, turnId: string): CallingTurn {
  const { rootRunId = background?.rootRunId ?? `root-turn-${turnId}`, run, authority, toolPolicy, toolBounds } = durable?.turn ?? {};
  const by = authorityOf({ origin, ...(background !== undefined && { background }), ...(authority !== undefined && { authority }) });
  const policies = [...(toolPolicy === undefined ? [] : [toolPolicy]), ...(toolBounds?.policies ?? [])];
  return {
    turnId,
    origin: by,
    sessionKey: target.sessionKey,
    rootRunId,
    ...(run !== undefined && { run }),
    ...((policies.length > 0 || toolBounds !== undefined) && { toolBounds: { policies, agents: toolBounds?.agents ?? [] } }),
  };
}

function withReportedTasks(rows: AlongsideRows | undefined, reported: readonly string[] | undefined): AlongsideRows | undefined {
  return reported === undefined ? rows : { ...rows, tasks: { ids: [...(rows?.tasks?.ids ?? []), ...reported], state: 'told' } };
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
