import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { ModelPrice } from './model.ts';

/** A model as its provider lists it. */
export interface ListedModel {
  readonly id: string;
  readonly displayName?: string;
  readonly contextWindow?: number;
  /** Set where the provider states it (OpenRouter). */
  readonly price?: ModelPrice;
}

const maxModels = 1000;
/** Models for something else than conversations; lists rarely say so otherwise. */
const otherUse =
  /embed|rerank|whisper|tts|transcribe|moderation|realtime|dall-e|imagen|[-/]image|veo-|sora|babbage|davinci|guard|speech|voice|lyria|computer-use/i;

const Window = once(() => z.int().min(512).optional().catch(undefined));
/** US dollars per token, as text. */
const Rate = once(() =>
  z
    .string()
    .regex(/^\d*\.?\d+(?:e-\d+)?$/i)
    .transform(Number)
    .pipe(z.number().max(1))
    .optional()
    .catch(undefined),
);
const Entry = once(() =>
  z.object({
    // Google writes `models/` before its ids.
    id: z
      .string()
      .transform((id) => id.replace(/^models\//, ''))
      .pipe(z.string().regex(/^[!-~]{1,256}$/)),
    name: z.string().max(256).optional().catch(undefined),
    display_name: z.string().max(256).optional().catch(undefined),
    max_model_len: Window(),
    context_length: Window(),
    context_window: Window(),
    max_context_length: Window(),
    meta: z.object({ n_ctx: Window() }).nullish().catch(undefined),
    pricing: z.object({ prompt: Rate(), completion: Rate(), input_cache_read: Rate(), input_cache_write: Rate() }).optional().catch(undefined),
  }),
);
/** `{data: […]}` of most servers, and the plain list of Together. */
const List = once(() => {
  const entries = z.array(z.unknown());
  return z.union([entries, z.object({ data: entries }).transform(({ data }) => data)]);
});

/**
 * Reads the answer to `GET /models`: the models for conversations, each once, 1000 at most. An entry that is not valid is left out.
 * @throws an error when it is not a list
 */
export function readModels(answer: unknown): readonly ListedModel[] {
  const models = new Map<string, ListedModel>();
  for (const item of List().parse(answer)) {
    const { data } = Entry().safeParse(item);
    if (data === undefined || otherUse.test(data.id) || models.has(data.id)) continue;
    models.set(data.id, listed(data));
    if (models.size === maxModels) break;
  }
  return [...models.values()];
}

function listed({ id, name, display_name: displayName, pricing, meta, ...sizes }: z.output<ReturnType<typeof Entry>>): ListedModel {
  const contextWindow = sizes.max_model_len ?? sizes.context_length ?? sizes.context_window ?? sizes.max_context_length ?? meta?.n_ctx;
  const title = displayName ?? name;
  const price = priceOf(pricing);
  return {
    id,
    ...(title !== undefined && { displayName: title }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(price !== undefined && { price }),
  };
}

/** Without a price of the cache, it costs as much as other input. */
function priceOf(pricing: z.output<ReturnType<typeof Entry>>['pricing']): ModelPrice | undefined {
  const { prompt, completion, input_cache_read: read, input_cache_write: write } = pricing ?? {};
  if (prompt === undefined || completion === undefined) return undefined;
  const perMillion = (rate: number) => Math.round(rate * 1e12) / 1e6;
  return {
    input: perMillion(prompt),
    output: perMillion(completion),
    cacheRead: perMillion(read ?? prompt),
    cacheWrite: perMillion(write ?? prompt),
  };
}
