import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { ModelPriceEntry, ProviderModelEntry, providerTypes } from '../shared/provider.ts';
import { EpochMs } from '../shared/turn.ts';
import { SecretName, SecretValue } from './env.ts';
import { costOrigin, ModelCost } from './models.ts';

const stateNames = once(() =>
  z
    .enum(['ok', 'refused', 'cooling', 'unreachable'])
    .describe('`refused`: it refused the credentials; `cooling`: it asked to wait; `unreachable`: it does not answer as it should.'),
);
const UntilMs = once(() => EpochMs.optional().describe('Until then it is not called, except on request of an owner.'));
const Cause = once(() => z.string().optional().describe("The provider's own sentence, secrets redacted."));

/** State of a provider as seen from calls to it. With several keys it is refused or cooling when each of them is. */
export const ProviderState = once(() =>
  z
    .strictObject({
      provider: z.string(),
      state: stateNames(),
      sinceMs: EpochMs,
      untilMs: UntilMs(),
      cause: Cause(),
    })
    .meta({ id: 'ProviderState' }),
);
export type ProviderState = z.output<ReturnType<typeof ProviderState>>;

const KeyReference = once(() => z.string().min(1).max(128).describe('Id of the key, or the name of its variable or secret.'));
/** Bound of `addKeys`: with `key`, as many secrets as may be set per minute. */
const mostAdded = 4;

const ProviderKey = once(() =>
  z.strictObject({
    id: z.string().describe('Where config.yaml has it, below the provider: `apiKey`, `apiKeys[0]`.'),
    from: z
      .enum(['environment', 'store', 'file'])
      .describe('`environment`: a variable of the daemon; `store`: a secret of the store; `file`: written in config.yaml itself.'),
    name: z.string().optional().describe('Name of the variable or secret.'),
    state: stateNames(),
    sinceMs: EpochMs,
    untilMs: UntilMs(),
    cause: Cause(),
  }),
);

const ProviderModel = once(() =>
  z.strictObject({
    modelId: z.string(),
    displayName: z.string(),
    source: z
      .enum(['config', 'listed', 'built_in', 'named'])
      .describe('Where it is named: in config.yaml, by the provider itself, in the built-in table, or only by an agent or `models.default`.'),
    cost: ModelCost().nullable().describe('Null when the price is not known.'),
    ...costOrigin(),
  }),
);

/** A provider of the catalog: what is configured, and its state as seen from calls. */
const ListedProvider = once(() =>
  z
    .strictObject({
      ...ProviderState().shape,
      type: z.enum(providerTypes),
      baseUrl: z.string().describe('Secrets redacted.'),
      source: z
        .enum(['config', 'environment', 'local_server'])
        .describe('`config`: config.yaml names it; `environment`: found by the key of its vendor; `local_server`: found on this machine.'),
      keys: z.array(ProviderKey()).describe('In the order in which they are used; empty when no key is set. Never the key itself.'),
      models: z.array(ProviderModel()),
      listedAtMs: EpochMs.optional().describe('When it was asked for its models last, except at the start.'),
    })
    .meta({ id: 'ListedProvider' }),
);

const state = {
  provider: 'openai',
  state: 'refused' as const,
  sinceMs: 1_790_000_000_000,
  untilMs: 1_790_000_060_000,
  cause: 'Provider "openai" answered 401: Incorrect API key provided',
};
const { provider: _, ...keyState } = state;
const cost = { input: 0.25, output: 2, cacheRead: 0.025, cacheWrite: 0.25 };

/** The model providers: what is configured, their state and tests of them (beyond json-rpc.md). */
export const providers = {
  'providers.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the model providers with their models and prices, where their key comes from, and their state as seen from calls.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ providers: z.array(ListedProvider()) }),
    examples: [
      {
        params: {},
        result: {
          providers: [
            {
              ...state,
              type: 'openai',
              baseUrl: 'https://api.openai.com/v1',
              source: 'config',
              keys: [{ ...keyState, id: 'apiKey', from: 'store', name: 'OPENAI_API_KEY' }],
              models: [
                {
                  modelId: 'gpt-5-mini',
                  displayName: 'GPT-5 mini',
                  source: 'built_in',
                  cost,
                  costSource: 'built_in',
                  costAsOf: '2025-12-15',
                  costUrl: 'https://openai.com/api/pricing',
                },
              ],
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'providers.retry': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Clears the state of a provider or of one of its keys, so that the next call goes through and waiting work is retried at once.',
    params: () => z.strictObject({ provider: z.string().min(1), key: KeyReference().optional() }),
    result: () => ProviderState(),
    examples: [{ params: { provider: 'local' }, result: { provider: 'local', state: 'ok', sinceMs: 1_790_000_010_000 } }],
    since: '0.1.0',
  }),
  'providers.refresh': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Asks a provider for its models and adds them to the catalog.',
    description:
      'This also happens in the background after a start, after a change of the provider, and once a day, for providers whose entry in config.yaml names no models; one that does has these alone. Models for other uses than conversations are left out, and of more than 1000 the rest.',
    params: () => z.strictObject({ provider: z.string().min(1) }),
    result: () =>
      z.strictObject({
        provider: z.string(),
        models: z.array(z.string()).describe('Models for conversations that the provider lists; empty when it does not list any.'),
        cause: z.string().optional().describe('Why there is no list.'),
      }),
    errors: ['not_found'],
    examples: [{ params: { provider: 'local' }, result: { provider: 'local', models: ['test-model'] } }],
    since: '0.1.0',
  }),
  'providers.set': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Adds a provider to config.yaml, or changes one; its keys go to the secret store, and it can be used at once.',
    description:
      'For owners. What is absent stays. A provider that was found by a key of the environment keeps that key and its address. `key` becomes `apiKey` and is stored under the name that config.yaml has for it, else under that of the vendor (`OPENAI_API_KEY`) or of the provider (`<ID>_API_KEY`); `addKeys` are appended to `apiKeys` under new names (`<ID>_2_API_KEY`); a name that the environment or other keys use is not taken. The change is validated and kept as that of `config.patch`. When it fails, the key may be stored already, and config.yaml is as before.',
    params: () =>
      z.strictObject({
        id: z.string().min(1).max(64),
        type: z.enum(providerTypes),
        baseUrl: z
          .url({ protocol: /^https?$/ })
          .optional()
          .describe("The vendor's own when absent."),
        key: SecretValue().optional(),
        addKeys: z.array(SecretValue()).min(1).max(mostAdded).optional().describe('Further keys, in addition to those that it has.'),
        removeKeys: z
          .array(KeyReference())
          .min(1)
          .max(17)
          .optional()
          .describe('Keys to remove from config.yaml; stored ones stay in the secret store.'),
        models: z.array(ProviderModelEntry()).optional().describe('Replaces the list. With it, the provider has no other models.'),
        prices: z
          .record(z.string().min(1).max(256), ModelPriceEntry().nullable())
          .optional()
          .describe('Own prices by model, in US dollars per million tokens; null removes one.'),
      }),
    result: () =>
      z.strictObject({
        provider: z.string(),
        key: SecretName().optional().describe('Name of the secret under which `key` was stored.'),
        addedKeys: z.array(SecretName()).optional().describe('Names of the secrets under which `addKeys` were stored.'),
        changed: z.array(z.string()).describe('Keys of config.yaml whose value changed.'),
        version: z.int().min(0),
        digest: z.string(),
      }),
    errors: ['not_found', 'denied', 'precondition_failed', 'rate_limited'],
    examples: [
      {
        params: { id: 'openai', type: 'openai', key: 'sk-example' },
        result: { provider: 'openai', key: 'OPENAI_API_KEY', changed: ['providers.openai'], version: 4, digest: '5d3c' },
      },
      {
        params: { id: 'openai', type: 'openai', addKeys: ['sk-example'], removeKeys: ['apiKeys[0]'] },
        result: { provider: 'openai', addedKeys: ['OPENAI_2_API_KEY'], changed: ['providers.openai.apiKeys'], version: 5, digest: '77aa' },
      },
    ],
    since: '0.1.0',
  }),
  'providers.remove': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Removes a provider from config.yaml; refused while something uses it, which is named.',
    description:
      'For owners. Agents, other keys of config.yaml, jobs and graphs that are saved or run count as uses. A stored key stays in the secret store: remove it with `env.remove`.',
    params: () => z.strictObject({ provider: z.string().min(1) }),
    result: () => z.strictObject({ removed: z.literal(true), provider: z.string(), version: z.int().min(0), digest: z.string() }),
    errors: ['not_found', 'denied', 'precondition_failed'],
    examples: [{ params: { provider: 'openai' }, result: { removed: true, provider: 'openai', version: 5, digest: '8f1a' } }],
    since: '0.1.0',
  }),
  'providers.test': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Calls a model of a provider once, with the shortest answer, and says what is wrong.',
    description:
      'Tests a provider of the catalog (`provider`) or one that is not stored (`candidate`); a `baseUrl` of a candidate is for owners, because the daemon sends the request. The call is made whatever earlier calls have shown, and charged to the default agent within its budgets; when it succeeds, the state of the key is `ok` for that model and waiting work is retried.',
    params: () =>
      z.strictObject({
        provider: z.string().min(1).optional(),
        candidate: z
          .strictObject({
            type: z.enum(providerTypes),
            baseUrl: z
              .url({ protocol: /^https?$/ })
              .optional()
              .describe("The vendor's own when absent."),
            key: SecretValue().optional(),
          })
          .optional()
          .describe('Nothing of it is stored.'),
        key: KeyReference().optional().describe('The key to test, by its id or name; by default the one that the next call would use.'),
        model: z.string().min(1).max(256).optional().describe('As the provider names it; by default the first one that the provider has.'),
      }),
    result: () =>
      z.strictObject({
        provider: z.string().describe('For a candidate, its type.'),
        verdict: z
          .enum(['ok', 'slow', 'key_refused', 'no_credit', 'rate_limited', 'unreachable', 'model_unknown', 'failed'])
          .describe('`slow`: it works, and took 10 s or longer; `failed`: it answers, but not as it should.'),
        message: z.string().describe('The verdict as a sentence.'),
        nextStep: z.string().optional().describe('What to do about it.'),
        cause: Cause(),
        key: z.string().optional().describe('Id of the key that was used; absent for a candidate, and for a provider without keys.'),
        model: z.string().describe('The model that was called.'),
        latencyMs: z.int().min(0),
        models: z.array(z.string()).describe('Models for conversations that the provider lists; empty when it does not list any.'),
      }),
    errors: ['not_found', 'denied', 'rate_limited'],
    examples: [
      {
        params: { provider: 'local' },
        result: {
          provider: 'local',
          verdict: 'key_refused',
          message: 'The provider refused the key',
          nextStep: 'Check that the key is complete, not revoked, and one of this provider',
          cause: 'Provider "local" answered 401: Incorrect API key provided',
          key: 'apiKey',
          model: 'test-model',
          latencyMs: 180,
          models: [],
        },
      },
    ],
    since: '0.1.0',
  }),
};
