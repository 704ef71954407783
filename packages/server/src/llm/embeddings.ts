import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Clock } from '../kernel/clock.ts';
import type { Live } from '../kernel/config/live.ts';
import type { EmbeddingConfig, ProviderConfig, ProvidersConfig } from './config.ts';
import { countTokens } from './count-tokens.ts';
import { concernsKey } from './key-state.ts';
import { providerHeaders } from './provider-headers.ts';
import { type ProviderKeys, providerKeys } from './provider-keys.ts';
import { hashingVector } from './hashing-embedder.ts';
import { KeptClients } from './kept-clients.ts';
import { ModelError, type ModelUsage } from './model.ts';
import { vendors } from './vendors.ts';
import { withUsage } from './wire/partial.ts';
import { Upstream } from './wire/upstream.ts';
import { ReportedInput } from './wire/usage.ts';

const defaultDimensions = 384;
/** Concurrent requests of one call. */
const parallel = 4;

export interface Embeddings {
  /** One per text, in order; all of the same length. */
  readonly vectors: readonly Float32Array[];
  readonly model: string;
  /** Tokens of all texts as the provider counted them, or as estimated. */
  readonly tokens: number;
}

/** Turns texts into vectors. Fails with ModelError only. */
export interface Embedder extends AsyncDisposable {
  readonly provider: string;
  readonly model: string;
  /** `dimensions`: the required length of the vectors; fails with `bad_request` when the model makes others. */
  embed(texts: readonly string[], signal: AbortSignal, dimensions?: number): Promise<Embeddings>;
}

/**
 * Creates the configured embedder; undefined when there is none. It follows changes of its provider. Fails with an Error that names the
 * configuration key.
 */
export function createEmbedder(
  config: EmbeddingConfig | undefined,
  deps: { readonly providers: Live<ProvidersConfig>; readonly clock: Clock },
): Embedder | undefined {
  if (config === undefined) return undefined;
  if (config.provider === 'hashing') return hashingEmbedder(config);
  const { providers, clock } = deps;
  const currentProvider = (): ProviderConfig => {
    const provider = providers.current[config.provider];
    if (provider === undefined)
      throw new Error(`embedding.provider: expected a provider of the configuration or "hashing", got "${config.provider}"`);
    return provider;
  };
  if (vendorOf(currentProvider()).embeddings === 'none')
    throw new Error(`embedding.provider: ${vendorOf(currentProvider()).name} offers no embeddings`);
  if (config.dimensions !== undefined) throw new Error('embedding.dimensions: expected only with provider "hashing"');
  const clients = new KeptClients<ProviderConfig, KeyedUpstream>(
    (provider) => new KeyedUpstream(config.provider, provider, clock),
    (provider) => providers.current[config.provider] === provider,
  );
  const following = providers.onChange(() => clients.retire());
  return {
    provider: config.provider,
    model: config.model,
    embed(texts, signal, dimensions) {
      const provider = currentProvider();
      return clients.use(provider, async (client) => {
        const base64 = vendorOf(provider).embeddings === 'base64';
        const ask = (batch: readonly string[]) =>
          client.withKey((upstream, key) => askProvider(upstream, { config, base64, dimensions, key }, batch, signal));
        const answer = await embedInBatches(texts, config.batchSize, ask);
        const length = answer.vectors[0]?.length;
        if (dimensions === undefined || length === undefined || length === dimensions) return answer;
        const refusal = new ModelError('bad_request', `The model ${config.model} makes vectors of ${length} dimensions, not of ${dimensions}`);
        throw withTokens(refusal, answer.tokens);
      });
    },
    [Symbol.asyncDispose]() {
      following[Symbol.dispose]();
      return clients[Symbol.asyncDispose]();
    },
  };
}

const vendorOf = ({ type }: ProviderConfig) => vendors[type];

/** The sockets to the provider. It stays with a key as long as it works. */
class KeyedUpstream implements AsyncDisposable {
  readonly #upstream: Upstream;
  readonly #keys: ProviderKeys;
  #at = 0;

  constructor(id: string, provider: ProviderConfig, clock: Clock) {
    this.#keys = providerKeys(provider, () => '');
    this.#upstream = new Upstream({
      provider: id,
      baseUrl: provider.baseUrl ?? vendorOf(provider).baseUrl ?? '',
      headers: this.#keys.map(({ value }) => providerHeaders(provider, value)),
      secrets: [...this.#keys.map(({ value }) => value ?? ''), ...Object.values(provider.headers)],
      maxConnections: provider.maxConnections,
      clock,
    });
  }

  /** Makes a request, with the next key when one is refused or asked to wait, with each of them once at most. */
  async withKey<T>(ask: (upstream: Upstream, key: number) => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried += 1) {
      const key = this.#at;
      try {
        return await ask(this.#upstream, key);
      } catch (error) {
        if (!(error instanceof ModelError) || !concernsKey(error) || tried >= this.#keys.length) throw error;
        if (this.#at === key) this.#at = (key + 1) % this.#keys.length;
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#upstream[Symbol.asyncDispose]();
  }
}

function hashingEmbedder(config: EmbeddingConfig): Embedder {
  const own = config.dimensions ?? defaultDimensions;
  const model = `hashing-${own}`;
  return {
    provider: 'hashing',
    model,
    async embed(texts, _signal, dimensions = own) {
      return {
        vectors: texts.map((text) => hashingVector(text, dimensions)),
        model,
        tokens: countAll(texts),
      };
    },
    async [Symbol.asyncDispose]() {},
  };
}

function countAll(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countTokens(text), 0);
}

async function embedInBatches(texts: readonly string[], size: number, ask: (batch: readonly string[]) => Promise<Embeddings>): Promise<Embeddings> {
  const batches = Array.from({ length: Math.ceil(texts.length / size) }, (_, i) => texts.slice(i * size, (i + 1) * size));
  const answers: Embeddings[] = [];
  const tokensOf = () => answers.reduce((sum, answer) => sum + answer.tokens, 0);
  for (let i = 0; i < batches.length; i += parallel) {
    const settled = await Promise.allSettled(batches.slice(i, i + parallel).map(ask));
    for (const one of settled) if (one.status === 'fulfilled') answers.push(one.value);
    const failed = settled.filter((one) => one.status === 'rejected').map((one): unknown => one.reason);
    if (failed.length > 0) throw withTokens(failed[0], tokensOf() + failed.reduce<number>((sum, error) => sum + tokensIn(error), 0));
  }
  const vectors = answers.flatMap((answer) => answer.vectors);
  const dimensions = vectors[0]?.length;
  if (vectors.some((vector) => vector.length !== dimensions))
    throw withTokens(new ModelError('bad_response', 'The provider sent vectors of different lengths'), tokensOf());
  return { vectors, model: answers[0]?.model ?? '', tokens: tokensOf() };
}

/** Builds the failure of one batch; the tokens of the others are paid for anyway. */
function withTokens(error: unknown, tokens: number): unknown {
  if (!(error instanceof ModelError) || tokens === 0) return error;
  return withUsage(error, inputOf(tokens, error.usage?.estimated ?? false));
}

const tokensIn = (error: unknown): number => (error instanceof ModelError ? (error.usage?.input ?? 0) : 0);

function inputOf(input: number, estimated: boolean): ModelUsage {
  return { input, output: 0, cacheRead: 0, cacheWrite: 0, estimated };
}

const Answer = once(() =>
  z.object({
    data: z.array(z.object({ index: z.int().min(0).nullish(), embedding: z.union([z.array(z.number()), z.string()]) })),
    model: z.string().nullish(),
    usage: z.object({ prompt_tokens: ReportedInput }).nullish().catch(undefined),
  }),
);

function askProvider(
  upstream: Upstream,
  how: { readonly config: EmbeddingConfig; readonly base64: boolean; readonly dimensions: number | undefined; readonly key: number },
  texts: readonly string[],
  signal: AbortSignal,
): Promise<Embeddings> {
  const { config, base64, dimensions, key } = how;
  const body = JSON.stringify({
    model: config.model,
    input: texts,
    encoding_format: base64 ? 'base64' : 'float',
    ...(dimensions !== undefined && { dimensions }),
  });
  return upstream.post<Embeddings>(
    { path: '/embeddings', body, timeoutMs: config.timeoutMs, signal },
    { stream: undefined, whole: (bytes) => readAnswer(bytes, config.model, texts), unanswered: () => inputOf(countAll(texts), true) },
    key,
  );
}

function readAnswer(bytes: Buffer, asked: string, texts: readonly string[]): Embeddings {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    throw new ModelError('bad_response', 'expected JSON');
  }
  const answer = Answer().safeParse(value);
  if (!answer.success)
    throw new ModelError('bad_response', `the answer is not a list of embeddings (${answer.error.issues[0]?.path.join('.') ?? ''})`);
  const { data, model, usage } = answer.data;
  if (data.length !== texts.length) throw new ModelError('bad_response', `expected ${texts.length} embeddings, got ${data.length}`);
  const vectors = new Array<Float32Array | undefined>(texts.length).fill(undefined);
  for (const [place, { index, embedding }] of data.entries()) {
    const at = index ?? place;
    if (at >= vectors.length || vectors[at] !== undefined) throw new ModelError('bad_response', `embedding ${at} came twice or was not asked for`);
    vectors[at] = typeof embedding === 'string' ? fromBase64(embedding) : Float32Array.from(embedding);
  }
  const whole = vectors.filter((vector) => vector !== undefined);
  if (whole.some((vector) => vector.length === 0 || !vector.every(Number.isFinite)))
    throw new ModelError('bad_response', 'an embedding is empty or contains values other than numbers');
  return { vectors: whole, model: model ?? asked, tokens: usage?.prompt_tokens ?? countAll(texts) };
}

/** Decodes little-endian 32-bit floats; one by one, since the bytes need not be aligned nor the machine little-endian. */
function fromBase64(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length % 4 !== 0) throw new ModelError('bad_response', 'an embedding is not a row of 32-bit floats');
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}
