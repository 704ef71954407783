import * as z from 'zod';
import { once } from '../once.ts';

/** Body of `POST /v1/embeddings` (http-gateway.md §2.7). */
export const EmbeddingRequest = once(() =>
  z
    .strictObject({
      model: z.string().min(1).describe('The embedding model of the configuration, as provider/model or the bare model id; /v1/models lists it.'),
      input: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)], {
        error: 'expected a non-empty string or a non-empty array of non-empty strings (token ids are not accepted)',
      }),
      encoding_format: z.enum(['float', 'base64']).default('float'),
    })
    .meta({ id: 'EmbeddingRequest' }),
);
export type EmbeddingRequest = z.output<ReturnType<typeof EmbeddingRequest>>;

/** Body of `POST /v1/embeddings` with `gateway.compat.fields: extended`. */
export const ExtendedEmbeddingRequest = once(() =>
  EmbeddingRequest()
    .extend({
      dimensions: z.int().min(1).max(65_536).nullish().describe('Length of the vectors; refused when the model has another length.'),
      user: z.string().max(512).nullish().describe('Without effect.'),
    })
    .meta({ id: 'ExtendedEmbeddingRequest' }),
);

export const EmbeddingResponse = once(() =>
  z
    .strictObject({
      object: z.literal('list'),
      data: z.array(
        z.strictObject({
          object: z.literal('embedding'),
          embedding: z.union([z.array(z.number()), z.base64()]).describe('base64: the vector as little-endian 32-bit floats.'),
          index: z.int().min(0),
        }),
      ),
      model: z.string(),
      usage: z.strictObject({ prompt_tokens: z.int().min(0), total_tokens: z.int().min(0) }),
    })
    .meta({ id: 'EmbeddingResponse' }),
);
export type EmbeddingResponse = z.output<ReturnType<typeof EmbeddingResponse>>;
