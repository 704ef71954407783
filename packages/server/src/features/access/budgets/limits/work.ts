import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { Embedder } from '../../../../llm/embeddings.ts';
import { ModelError, type ModelInfo, type ModelUsage } from '../../../../llm/model.ts';
import type { Attempt, Models } from '../../../../llm/models.ts';
import { toCallRecord } from '../../../../runtime/call-record.ts';
import { countMessage } from '../../../../runtime/message-tokens.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { Reservation } from '../../../../runtime/turn-budget.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { ModelWork, ReserveStore, WorkBooking, WorkFor, WorkOpening } from '../api.ts';
import type { Ledger } from './ledger.ts';
import { createLimiter } from './limiter.ts';
import { LedgerBudget } from './turn-budget.ts';

export interface WorkDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly models: Pick<Models, 'resolve'>;
  readonly generate: Models['generate'];
  readonly embedder: Embedder | undefined;
  /** The agent's own model and its fallbacks. */
  readonly modelsFor: (agent: Agent) => readonly ModelInfo[];
  readonly openWork: Operation<WorkOpening, void>;
  readonly bookWork: Operation<WorkBooking, void>;
  /** A further call of work that has a row. */
  readonly reserveForTurn: Operation<{ readonly id: string; readonly reservedNano: number; readonly model: string }, void>;
  /** Reports booked calls (`observability:token_usage`). */
  readonly announceUsed: (
    calls: readonly CallRecord[],
    about: { readonly turnId: string; readonly traceId: string; readonly agentId: string; readonly conversationRef?: string | undefined },
    owner: string,
  ) => void;
  /** Counts an attempt that `generate` does not count. */
  readonly countAttempt: (agentId: string, attempt: Attempt) => void;
}

/** Embeddings are short and frequent, and people wait for those of `/v1`. */
const limits = { generate: { running: 4, waiting: 256 }, embed: { running: 16, waiting: 1024 } };

export function createModelWork(deps: WorkDeps, ledger: Ledger): ModelWork {
  const generating = createLimiter(limits.generate);
  const embedding = createLimiter(limits.embed);

  /** Reserves, calls, settles, books and announces, whatever the outcome. */
  async function accounted<T>(
    work: WorkFor,
    operation: CallRecord['operation'],
    need: { readonly models: readonly ModelInfo[]; readonly inputTokens: number; readonly maxOutputTokens: number },
    call: (attempts: { readonly calls: CallRecord[]; readonly reservation: Reservation | undefined }) => Promise<T>,
  ): Promise<T> {
    const { agentId, principalId, conversationRef } = work;
    const row = new WorkRow(deps, {
      id: newId('wk'),
      agentId,
      principalId,
      conversationRef: conversationRef ?? null,
      operation,
      traceId: newTraceId(),
    });
    const budget = new LedgerBudget(ledger, agentId, row);
    const reservation = budget.reserve(need);
    if (reservation !== undefined && 'refused' in reservation) {
      const { message, retryAfterMs } = reservation.refused;
      throw new AppError('rate_limited', message, retryAfterMs === undefined ? {} : { retryAfterMs });
    }
    const calls: CallRecord[] = [];
    try {
      await reservation?.stored;
      return await call({ calls, reservation });
    } finally {
      if (reservation === undefined) for (const one of calls) budget.spend(one);
      else reservation.settle(calls);
      await row.book(calls);
    }
  }

  return {
    generate: (work) =>
      generating(work.signal, async () => {
        const agent = agentOf(work.agentId);
        const { models, timeoutMs } = modelsOf(agent, work.operation);
        let inputTokens = 0;
        for (const text of work.system) inputTokens += countTokens(text) + 2;
        for (const message of work.messages) inputTokens += countMessage(message, countTokens);
        return accounted(work, work.operation, { models, inputTokens, maxOutputTokens: work.maxTokens }, async ({ calls, reservation }) => {
          const { result, model } = await deps.generate({
            models,
            agentId: agent.id,
            request: {
              system: work.system,
              messages: work.messages,
              tools: [],
              maxTokens: reservation?.maxOutputTokens ?? work.maxTokens,
              cacheRetention: 'none',
              timeoutMs,
              signal: work.signal,
              ...(work.temperature !== undefined && { temperature: work.temperature }),
            },
            onAttempt: (attempt) => calls.push(toCallRecord(attempt, work.operation)),
            ...(reservation !== undefined && { mayContinue: () => reservation.covers(calls) }),
          });
          return { text: result.text, model: `${model.provider}/${model.modelId}`, finish: result.finish };
        });
      }),

    embed: (work) =>
      embedding(work.signal, async () => {
        const { embedder } = deps;
        if (embedder === undefined) throw new AppError('precondition_failed', 'No embedding provider is configured: set embedding.provider');
        const agent = agentOf(work.agentId);
        const model = embeddingModel(embedder);
        const inputTokens = work.texts.reduce((sum, text) => sum + countTokens(text), 0);
        return accounted(work, 'embedding', { models: [model], inputTokens, maxOutputTokens: 0 }, async ({ calls }) => {
          const startedAtMs = deps.clock.now();
          const begun = deps.clock.monotonic();
          const record = (outcome: Attempt['outcome'], usage: ModelUsage) => {
            const attempt = { model, usage, latencyMs: deps.clock.monotonic() - begun, startedAtMs, outcome };
            calls.push(toCallRecord(attempt, 'embedding'));
            deps.countAttempt(agent.id, attempt);
          };
          try {
            const answer = await embedder.embed(work.texts, work.signal, work.dimensions);
            record('ok', inputOnly(answer.tokens));
            return answer;
          } catch (error) {
            record('error', (error instanceof ModelError ? error.usage : undefined) ?? inputOnly(0));
            throw error;
          }
        });
      }),
  };

  function agentOf(agentId: string): Agent {
    const agent = deps.agents.find(agentId);
    if (agent === undefined) throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  /** The model of the operation first, with the agent's own models as fallbacks. */
  function modelsOf(agent: Agent, operation: CallRecord['operation'] & keyof Agent['config']['operationModels']) {
    const own = deps.modelsFor(agent);
    const chosen = agent.config.operationModels[operation];
    const model = chosen === undefined ? undefined : deps.models.resolve(chosen.model, own[0]?.provider);
    const models = model === undefined ? own : [model, ...own.filter((other) => other !== model)];
    return { models, timeoutMs: chosen?.timeoutMs ?? agent.config.modelTimeoutMs };
  }

  /** Returns the price of an embedding from the provider's model entry; local ones are free. */
  function embeddingModel({ provider, model }: Embedder): ModelInfo {
    const listed = deps.models.resolve(`${provider}/${model}`);
    const price = provider === 'hashing' ? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } : (listed?.price ?? null);
    return {
      provider,
      modelId: model,
      displayName: model,
      contextWindow: 0,
      maxTokens: 0,
      input: ['text'],
      reasoning: false,
      price,
      validated: listed !== undefined,
    };
  }
}

function inputOnly(input: number): ModelUsage {
  return { input, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false };
}

/** The row of running work under a cap in money, and the booking that replaces it. */
class WorkRow implements ReserveStore {
  readonly #deps: WorkDeps;
  readonly #work: Omit<WorkOpening, 'model' | 'reservedNano' | 'startedAtMs'>;
  #opened = false;

  constructor(deps: WorkDeps, work: Omit<WorkOpening, 'model' | 'reservedNano' | 'startedAtMs'>) {
    this.#deps = deps;
    this.#work = work;
  }

  reserve(reservedNano: number, model: string): Promise<void> {
    const { db, openWork, reserveForTurn, clock } = this.#deps;
    if (this.#opened) return db.write(reserveForTurn, { id: this.#work.id, reservedNano, model });
    this.#opened = true;
    return db.write(openWork, { ...this.#work, reservedNano, model, startedAtMs: clock.now() });
  }

  async book(calls: readonly CallRecord[]): Promise<void> {
    if (calls.length === 0 && !this.#opened) return;
    const { db, bookWork, announceUsed } = this.#deps;
    const { id, agentId, principalId, conversationRef, traceId } = this.#work;
    await db.write(bookWork, { id, agentId, principalId, conversationRef, opened: this.#opened, calls });
    announceUsed(calls, { turnId: id, traceId, agentId, conversationRef: conversationRef ?? undefined }, principalId);
  }
}
