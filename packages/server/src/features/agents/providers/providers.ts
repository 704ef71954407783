import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Environment } from '../../../kernel/config/references.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { ConfiguredModels, DescribedProvider } from '../../../llm/create-models.ts';
import { type Trial, trialMessages, type TrialTarget } from '../../../llm/trial.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { SettingsApi } from '../../operations/settings/api.ts';
import type { AgentsApi } from '../agents/api.ts';
import { keySourceOf } from './key-source.ts';
import { verdictOf } from './verdict.ts';

export interface ProvidersDeps {
  readonly models: Pick<ConfiguredModels, 'describeProviders' | 'prepareTrial' | 'clearState'>;
  readonly agents: Pick<AgentsApi, 'defaultId'>;
  readonly work: Pick<ModelWork, 'meter'>;
  readonly settings: Pick<SettingsApi, 'isOwner'>;
  readonly readText: () => string;
  /** Environment of the daemon, without the secret store. */
  readonly env: Environment;
  /** Removes secrets that an address may carry. */
  readonly redactText: (text: string) => string;
}

const answerTokens = 16;
/** Models that reason may fail, or answer nothing, with less. */
const reasoningTokens = 256;

/** `providers.*`: the model providers as they are configured and as calls have shown them. */
export function createProviders(deps: ProvidersDeps): HandlersOf<'providers.list' | 'providers.retry' | 'providers.test'> {
  const { models } = deps;

  function listed(provider: DescribedProvider, text: string): ResultInput<'providers.list'>['providers'][number] {
    const { type, source, baseUrl, state } = provider;
    const key = keySourceOf(provider, text, deps.env);
    const { untilMs } = state;
    return {
      ...state,
      type,
      baseUrl: deps.redactText(baseUrl),
      source,
      keys: key === undefined ? [] : [{ ...key, state: state.state, ...(untilMs !== undefined && { untilMs }) }],
      models: provider.models.map((model) => ({
        modelId: model.modelId,
        displayName: model.displayName,
        source: model.source,
        cost: model.price,
        costSource: model.costSource,
      })),
    };
  }

  async function prepare({ provider, candidate, model }: Params<'providers.test'>, call: CallContext): Promise<Trial> {
    const target: TrialTarget | undefined =
      candidate === undefined
        ? provider
        : { type: candidate.type, ...(candidate.baseUrl !== undefined && { baseUrl: candidate.baseUrl }), apiKey: candidate.key };
    if (target === undefined || (provider !== undefined && candidate !== undefined))
      throw new AppError('invalid_params', 'Expected either provider or candidate', { param: 'provider' });
    // As in config.yaml, only owners choose where the daemon sends requests.
    if (candidate?.baseUrl !== undefined && !deps.settings.isOwner(call))
      throw new AppError('denied', 'Only an owner may choose an address (a token with scope "*", or the socket of the home folder)', {
        param: 'candidate.baseUrl',
      });
    const trial = await models.prepareTrial(target, model, call.signal);
    if (trial !== undefined) return trial;
    if (candidate !== undefined)
      throw new AppError('invalid_params', `Type "${candidate.type}" has no default address: set baseUrl`, { param: 'candidate.baseUrl' });
    throw unknownProvider(provider ?? '');
  }

  return {
    'providers.list': async () => {
      const text = deps.readText();
      return { providers: models.describeProviders().map((provider) => listed(provider, text)) };
    },

    'providers.retry': async ({ provider }) => {
      models.clearState(provider);
      const state = models.describeProviders().find(({ id }) => id === provider)?.state;
      if (state === undefined) throw unknownProvider(provider);
      return state;
    },

    'providers.test': async (params, call) => {
      const trial = await prepare(params, call);
      const { model } = trial;
      const attempt = await deps.work.meter(
        {
          agentId: deps.agents.defaultId,
          principalId: call.identity.principalId,
          model,
          messages: trialMessages,
          maxTokens: Math.min(model.maxTokens, model.reasoning ? reasoningTokens : answerTokens),
          signal: call.signal,
        },
        (maxTokens) => trial.call(maxTokens, call.signal),
      );
      return {
        provider: trial.provider,
        ...verdictOf(attempt, model.modelId, trial.listed.length > 0),
        ...(attempt.error !== undefined && { cause: attempt.error.message }),
        model: model.modelId,
        latencyMs: Math.round(attempt.latencyMs),
        models: [...trial.listed],
      };
    },
  };
}

function unknownProvider(provider: string): AppError {
  return new AppError('not_found', `No provider "${provider}" is configured or was found`, { param: 'provider' });
}
