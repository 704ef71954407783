import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Edit } from '../../../kernel/config/edit.ts';
import type { Environment } from '../../../kernel/config/references.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { ConfiguredModels, DescribedProvider } from '../../../llm/create-models.ts';
import { ProviderId } from '../../../llm/config.ts';
import { type Trial, trialMessages, type TrialTarget } from '../../../llm/trial.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { SecretsApi } from '../../operations/secrets/api.ts';
import type { SettingsApi } from '../../operations/settings/api.ts';
import type { AgentsApi } from '../agents/api.ts';
import type { StoredUse } from './api.ts';
import { keySourceOf } from './key-source.ts';
import { keyIdOf, setProvider } from './set-provider.ts';
import { usesOf, type UsesDeps } from './uses.ts';
import { verdictOf } from './verdict.ts';

export interface ProvidersDeps {
  readonly models: Pick<ConfiguredModels, 'describeProviders' | 'prepareTrial' | 'refresh' | 'clearState' | 'clearKey' | 'resolve'>;
  readonly agents: Pick<AgentsApi, 'defaultId' | 'list'>;
  readonly work: Pick<ModelWork, 'meter'>;
  readonly settings: Pick<SettingsApi, 'isOwner' | 'change'>;
  readonly secrets: Pick<SecretsApi, 'replace' | 'environment'>;
  /** The configuration in force. */
  readonly config: () => UsesDeps['config'];
  /** Returns the jobs and graphs that may name models. */
  readonly readUses: () => Promise<readonly StoredUse[]>;
  readonly readText: () => string;
  /** Environment of the daemon, without the secret store. */
  readonly env: Environment;
  /** Removes secrets that an address may carry. */
  readonly redactText: (text: string) => string;
}

const maxShownUses = 10;
const answerTokens = 16;
/** Models that reason may fail, or answer nothing, with less. */
const reasoningTokens = 256;

/** `providers.*`: the model providers as they are configured and as calls have shown them. */
export function createProviders(deps: ProvidersDeps): HandlersOf<`providers.${'list' | 'refresh' | 'retry' | 'set' | 'remove' | 'test'}`> {
  const { models } = deps;
  /** Changes, one after another. */
  let changes: Promise<unknown> = Promise.resolve();

  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = changes.then(change);
    changes = next.catch(() => undefined);
    return next;
  }

  function listed(provider: DescribedProvider, text: string): ResultInput<'providers.list'>['providers'][number] {
    const { type, source, baseUrl, state } = provider;
    return {
      ...state,
      type,
      baseUrl: deps.redactText(baseUrl),
      source,
      keys: provider.keys.map((key) => ({ id: key.id, ...keySourceOf(provider, key, text, deps.env), ...key.state })),
      models: provider.models.map((model) => ({
        modelId: model.modelId,
        displayName: model.displayName,
        source: model.origin.source,
        cost: model.price,
        costSource: model.origin.cost.source,
        costAsOf: model.origin.cost.asOf,
        costUrl: model.origin.cost.url,
      })),
      listedAtMs: provider.listedAtMs,
    };
  }

  function requireOwner(call: CallContext, what: string, param: string): void {
    if (deps.settings.isOwner(call)) return;
    throw new AppError('denied', `Only an owner may ${what} (a token with scope "*", or the socket of the home folder)`, { param });
  }

  const find = (id: string) => models.describeProviders().find((one) => one.id === id);

  function keysOf(provider: DescribedProvider) {
    const text = deps.readText();
    return provider.keys.map((key) => ({ id: key.id, ...keySourceOf(provider, key, text, deps.env) }));
  }

  async function set(params: Params<'providers.set'>, call: CallContext) {
    requireOwner(call, 'change providers', 'id');
    // Its key is stored before the configuration refuses the id, and under a name that no secret may have.
    const id = ProviderId.safeParse(params.id);
    if (!id.success) throw new AppError('invalid_params', `id: ${id.error.issues[0]?.message ?? 'not valid'}`, { param: 'id' });
    const present = find(params.id);
    const keys = present === undefined ? [] : keysOf(present);
    const removed = (params.removeKeys ?? []).map((key) => keyIdOf(params.id, keys, key, 'removeKeys'));
    return setProvider(deps, params, { present, removed }, call);
  }

  async function remove(id: string, call: CallContext) {
    requireOwner(call, 'remove providers', 'provider');
    const provider = find(id);
    if (provider === undefined) throw unknownProvider(id);
    if (provider.source !== 'config')
      throw new AppError(
        'precondition_failed',
        `The provider "${id}" is not in config.yaml: it was found, and models.discover: false ends the search`,
        {
          param: 'provider',
        },
      );
    const uses = usesOf(id, { models, agents: deps.agents.list(), config: deps.config(), stored: await deps.readUses() });
    if (uses.length > 0) {
      const shown = uses.length > maxShownUses ? [...uses.slice(0, maxShownUses), `${uses.length - maxShownUses} more`] : uses;
      throw new AppError('precondition_failed', `The provider "${id}" is used by ${shown.join(', ')}: change these first`, { param: 'provider' });
    }
    const edits: Edit[] = [{ unset: ['providers', id] }];
    const change = { section: 'providers', key: id, origin: 'rpc', edits, actionType: 'providers.remove', summary: 'removed' } as const;
    const { version, digest } = await deps.settings.change(change, call);
    return { removed: true as const, provider: id, version, digest };
  }

  async function prepare({ provider, candidate, model, key }: Params<'providers.test'>, call: CallContext): Promise<Trial> {
    const target: TrialTarget | undefined =
      candidate === undefined
        ? provider
        : { type: candidate.type, ...(candidate.baseUrl !== undefined && { baseUrl: candidate.baseUrl }), apiKey: candidate.key };
    if (target === undefined || (provider !== undefined && candidate !== undefined))
      throw new AppError('invalid_params', 'Expected either provider or candidate', { param: 'provider' });
    // As in config.yaml, only owners choose where the daemon sends requests.
    if (candidate?.baseUrl !== undefined) requireOwner(call, 'choose an address', 'candidate.baseUrl');
    if (key !== undefined && candidate !== undefined) throw new AppError('invalid_params', 'A candidate has one key alone', { param: 'key' });
    const present = provider === undefined ? undefined : find(provider);
    const keyId = key === undefined || present === undefined ? undefined : keyIdOf(present.id, keysOf(present), key, 'key');
    const trial = await models.prepareTrial(target, { model, key: keyId }, call.signal);
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

    'providers.retry': async ({ provider, key }) => {
      const present = find(provider);
      if (present === undefined) throw unknownProvider(provider);
      if (key === undefined) models.clearState(provider);
      else models.clearKey(provider, keyIdOf(provider, keysOf(present), key, 'key'));
      return find(provider)?.state ?? present.state;
    },

    'providers.refresh': async ({ provider }, call) => {
      const refreshed = await models.refresh(provider, call.signal);
      if (refreshed === undefined) throw unknownProvider(provider);
      const { listed: found, fault } = refreshed;
      return { provider, models: [...found], ...(fault !== undefined && { cause: deps.redactText(fault) }) };
    },

    'providers.set': (params, call) => inTurn(() => set(params, call)),
    'providers.remove': ({ provider }, call) => inTurn(() => remove(provider, call)),

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
        ...(params.candidate === undefined && trial.key.value !== undefined && { key: trial.key.id }),
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
