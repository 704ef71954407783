import { AppError } from '../../../../kernel/app-error.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { Embedder } from '../../../../llm/embeddings.ts';
import { tierOf } from '../../../../llm/model-tier.ts';
import { ModelError, type ModelInfo, type ModelUsage } from '../../../../llm/model.ts';
import type { Attempt, Models } from '../../../../llm/models.ts';
import { toCallRecord } from '../../../../runtime/call-record.ts';
import { countMessage } from '../../../../runtime/message-tokens.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { TracesApi } from '../../../operations/traces/api.ts';
import type { ChargedAnswer, ChargedWork, ModelWork } from '../api.ts';
import type { Ledger } from './ledger.ts';
import { succeededCalls } from '../store.ts';
import { createSlots } from './slots.ts';
import { WorkAccounts, type WorkAccountsDeps } from './work-accounts.ts';
import { beginWorkTrace } from './work-trace.ts';

export interface WorkDeps extends WorkAccountsDeps {
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly models: Pick<Models, 'resolve'>;
  readonly generate: Models['generate'];
  readonly embedder: Embedder | undefined;
  /** The agent's own model and its fallbacks. */
  readonly modelsFor: (agent: Agent) => readonly ModelInfo[];
  /** Counts an attempt that `generate` does not count. */
  readonly countAttempt: (agentId: string, attempt: Attempt) => void;
  readonly traces: Pick<TracesApi, 'ofTurn' | 'work'>;
}

type GenerateWork = Parameters<ModelWork['generate']>[0];
type Generated = Awaited<ReturnType<ModelWork['generate']>>;
type EmbedWork = Parameters<ModelWork['embed']>[0];

/** Embeddings are short and frequent, and people wait for those of `/v1`. */
const limits = { generate: { running: 4, waiting: 256 }, embed: { running: 16, waiting: 1024 }, charge: { running: 4, waiting: 64 } };

export function createModelWork(deps: WorkDeps, ledger: Ledger): ModelWork {
  const generating = createSlots(limits.generate);
  const embedding = createSlots(limits.embed);
  const charging = createSlots(limits.charge);
  const accounts = new WorkAccounts(deps, ledger);

  function agentOf(agentId: string): Agent {
    const agent = deps.agents.find(agentId);
    if (agent === undefined) throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  async function generate(work: GenerateWork) {
    const agent = agentOf(work.agentId);
    const { models, timeoutMs } = wantedModels(deps, agent, work);
    let inputTokens = 0;
    for (const text of work.system) inputTokens += countTokens(text) + 2;
    for (const message of work.messages) inputTokens += countMessage(message, countTokens);
    const need = {
      operation: work.operation,
      models,
      inputTokens,
      maxOutputTokens: work.maxTokens,
      // Empty when it cannot be used, so that it is not made again.
      ...(work.summarizes !== undefined && { answerOf: ({ text, finish }: Generated) => (finish === 'stop' ? text.trim() : '') }),
    };
    const traced = beginWorkTrace(deps.traces, work, models);
    const running = accounts.run(work, { ...need, traceId: traced.traceId }, async ({ calls, add, reservation }) => {
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
        onAttempt(attempt) {
          const record = toCallRecord(attempt, work.operation);
          add(record);
          traced.attempt(attempt, record);
        },
        ...(reservation !== undefined && { mayContinue: () => reservation.covers(calls) }),
      });
      return { text: result.text, model: `${model.provider}/${model.modelId}`, finish: result.finish };
    });
    return traced.until(running, work.signal);
  }

  async function embed(work: EmbedWork) {
    const { embedder } = deps;
    if (embedder === undefined) throw new AppError('precondition_failed', 'No embedding provider is configured: set embedding.provider');
    const agent = agentOf(work.agentId);
    const model = embeddingModel(deps, embedder);
    const inputTokens = work.texts.reduce((sum, text) => sum + countTokens(text), 0);
    const operation = 'embedding' as const;
    // Nobody is called for those of this process.
    const traced = embedder.provider === 'hashing' ? undefined : beginWorkTrace(deps.traces, { ...work, operation }, [model]);
    const need = { operation, models: [model], inputTokens, maxOutputTokens: 0, ...(traced !== undefined && { traceId: traced.traceId }) };
    const running = accounts.run(work, need, async ({ add }) => {
      const startedAtMs = deps.clock.now();
      const begun = deps.clock.monotonic();
      const record = (outcome: Attempt['outcome'], usage: ModelUsage) => {
        const attempt = { model, usage, latencyMs: deps.clock.monotonic() - begun, startedAtMs, outcome };
        const made = toCallRecord(attempt, operation);
        add(made);
        traced?.attempt(attempt, made);
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
    return traced === undefined ? running : traced.until(running, work.signal);
  }

  async function charge<Answer extends ChargedAnswer>(work: ChargedWork, call: () => Promise<Answer>): Promise<Answer> {
    const agent = agentOf(work.agentId);
    const { operation, mostNano, priceKey } = work;
    const model = chargedModel(work);
    const need = { operation, models: [model], inputTokens: 0, maxOutputTokens: 0, mostNano: mostNano ?? 0, priceKey };
    return accounts.run(work, need, async ({ add }) => {
      const startedAtMs = deps.clock.now();
      const begun = deps.clock.monotonic();
      const record = (
        outcome: Attempt['outcome'],
        { input, output }: { readonly input: number; readonly output: number },
        costNano: number | null,
      ) => {
        const usage = { ...inputOnly(input), output };
        const attempt = { model, usage, latencyMs: deps.clock.monotonic() - begun, startedAtMs, outcome };
        const cost = costNano === null ? null : { input: costNano, output: 0, cacheRead: 0, cacheWrite: 0 };
        add({ ...toCallRecord(attempt, operation), cost, savedNano: costNano === null ? null : 0 });
        deps.countAttempt(agent.id, attempt);
      };
      const nothing = { input: 0, output: 0 };
      try {
        const answer = await call();
        record('ok', answer.tokens ?? nothing, answer.costNano);
        return answer;
      } catch (error) {
        record('error', nothing, 0);
        throw error;
      }
    });
  }

  async function meter(work: Parameters<ModelWork['meter']>[0], call: Parameters<ModelWork['meter']>[1]): Promise<Attempt> {
    const agent = agentOf(work.agentId);
    const inputTokens = work.messages.reduce((sum, message) => sum + countMessage(message, countTokens), 0);
    const need = { operation: 'interactive' as const, models: [work.model], inputTokens, maxOutputTokens: work.maxTokens };
    return accounts.run(work, need, async ({ add, reservation }) => {
      const attempt = await call(reservation?.maxOutputTokens ?? work.maxTokens);
      add(toCallRecord(attempt, need.operation));
      deps.countAttempt(agent.id, attempt);
      return attempt;
    });
  }

  return {
    tierOf(agentId, operation) {
      const [model] = modelsOf(deps, agentOf(agentId), operation).models;
      return model === undefined ? 'mid' : tierOf(model);
    },
    mediaCalls: (wanted) => deps.db.read(succeededCalls, wanted),
    meter,
    charge: (work, call) => charging(work.signal, () => charge(work, call)),
    generate: (work) => generating(work.signal, () => generate(work)),
    embed: (work) => embedding(work.signal, () => embed(work)),
  };
}

/** Returns the models that the work names, or those of its operation. */
function wantedModels(
  deps: Pick<WorkDeps, 'models' | 'modelsFor'>,
  agent: Agent,
  { operation, models, timeoutMs = agent.config.modelTimeoutMs }: GenerateWork,
) {
  if (models !== undefined) return { models, timeoutMs };
  return operation === 'vision' ? { models: deps.modelsFor(agent), timeoutMs } : modelsOf(deps, agent, operation);
}

/** Returns the model of the operation first, with the agent's own models as fallbacks. */
function modelsOf(
  deps: Pick<WorkDeps, 'models' | 'modelsFor'>,
  agent: Agent,
  operation: CallRecord['operation'] & keyof Agent['config']['operationModels'],
) {
  const own = deps.modelsFor(agent);
  const chosen = agent.config.operationModels[operation];
  const model = chosen === undefined ? undefined : deps.models.resolve(chosen.model, own[0]?.provider);
  const models = model === undefined ? own : [model, ...own.filter((other) => other !== model)];
  return { models, timeoutMs: chosen?.timeoutMs ?? agent.config.modelTimeoutMs };
}

/** Returns the price of an embedding from the provider's model entry; local ones are free. */
function embeddingModel({ models }: Pick<WorkDeps, 'models'>, { provider, model }: Embedder): ModelInfo {
  const listed = models.resolve(`${provider}/${model}`);
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

/** A model that is called without the catalog; its price is that of the work. */
function chargedModel({ provider, modelId, mostNano }: ChargedWork): ModelInfo {
  const price = mostNano === null ? null : { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return { provider, modelId, displayName: modelId, contextWindow: 0, maxTokens: 0, input: [], reasoning: false, price, validated: false };
}

function inputOnly(input: number): ModelUsage {
  return { input, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false };
}
