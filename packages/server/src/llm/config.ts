import { ModelName, ModelPriceEntry, ProviderModelEntry, providerTypes } from '@gatehouse/contract';
import * as z from 'zod';

/** Id of a provider; `agent` is reserved for the agents' own ids and `offline` for the built-in model. */
export const ProviderId = z
  .string()
  .regex(/^(?!agent$|offline$)[a-z0-9][a-z0-9_-]{0,63}$/, 'expected lower-case letters, digits, "-" or "_" (not "agent" or "offline")');

/** One entry of section `providers`. */
export const ProviderConfig = z.strictObject({
  type: z.enum(providerTypes).describe('Which wire and which quirks; openai-compatible needs baseUrl.'),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Base of the API, up to and with /v1 where the vendor has it.'),
  apiKey: z.string().min(1).optional().meta({ secret: true }).describe('"${NAME}" takes it from the environment or the secret store.'),
  apiKeys: z
    .array(z.string().min(1))
    .max(16)
    .optional()
    .meta({ secret: true })
    .describe(
      'Further keys. A call stays with one key as long as it works; a key that is refused or asked to wait is paused alone, and the next one is used.',
    ),
  headers: z.record(z.string(), z.string()).default({}).meta({ secret: true }).describe('Further headers of every request.'),
  models: z
    .array(ProviderModelEntry())
    .default([])
    .describe('Models to list; for the well-known vendors the built-in table is taken when this is empty.'),
  prices: z
    .record(z.string().min(1).max(256), ModelPriceEntry())
    .optional()
    .describe('Own prices by model, in US dollars per million tokens, for models that `models` does not list; they win over the built-in table.'),
  maxConnections: z.int().min(1).max(4096).default(256).describe('Sockets to this provider at once.'),
  fastStreams: z
    .boolean()
    .default(true)
    .describe(
      'Frames of a streamed answer that differ from an earlier one in their text alone are passed on without being parsed. Turn it off if streamed answers of this provider arrive garbled while the same answers are right without streaming.',
    ),
});
export type ProviderConfig = z.output<typeof ProviderConfig>;

/** Section `providers`: id → provider. */
export const ProvidersConfig = z.record(ProviderId, ProviderConfig);
export type ProvidersConfig = z.output<typeof ProvidersConfig>;

/** Section `embedding`; without it `/v1/embeddings` answers 404. */
export const EmbeddingConfig = z.strictObject({
  provider: z.string().min(1).describe('A configured provider, or "hashing": built in, deterministic, no key and no network.'),
  model: z.string().min(1).default('hashing-384').describe("The provider's embedding model."),
  dimensions: z.int().min(8).max(4096).optional().describe('Only for "hashing": length of the vectors, 384 otherwise.'),
  batchSize: z.int().min(1).max(2048).default(96).describe('Texts per request to the provider.'),
  timeoutMs: z.int().min(100).max(600_000).default(30_000),
});
export type EmbeddingConfig = z.output<typeof EmbeddingConfig>;

/** Section `models`: settings for all providers. */
export const ModelsConfig = z.strictObject({
  default: ModelName.optional().describe('Model of agents that name none.'),
  discover: z
    .boolean()
    .default(true)
    .describe(
      'Look for API keys of other vendors in the environment and the secret store and, while no provider is configured, for local model servers.',
    ),
  fetch: z
    .boolean()
    .default(true)
    .describe(
      'Ask providers whose entry names no models for those that they have: a little after the start, after a change, and once a day. Without it, only `providers.refresh` does.',
    ),
  maxAnswerBytes: z
    .int()
    .min(1024)
    .default(8_388_608)
    .describe(
      'The longest provider answer that is accepted, text and tool arguments together. Below it, 16 bytes for each requested token and at least 1 MiB. A longer one is cut off there: the connection is closed and the turn ends with what there is, as `provider_degraded`.',
    ),
  titles: z
    .boolean()
    .default(true)
    .describe(
      'Let a model give the chats of the dashboard a title after their first answer, with the model of the operation `condensation`. Without it, the beginning of the first message stays.',
    ),
  cooldownMs: z.int().min(0).default(60_000).describe('First pause after a provider refused its key or asked to wait; grows fivefold up to an hour.'),
});
export type ModelsConfig = z.output<typeof ModelsConfig>;
