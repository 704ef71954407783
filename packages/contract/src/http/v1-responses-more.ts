import * as z from 'zod';
import { once } from '../once.ts';
import { ResponseInputItem } from './v1-responses-items.ts';
import { ResponseObject } from './v1-responses.ts';

const usage = once(() => ResponseObject().shape.usage.unwrap());

/** What is condensed or counted; fields that only steer an answer are accepted. */
const input = once(() => ({
  model: z.string().min(1).describe('provider/model, the bare model id, or an agent id.'),
  input: z.union([z.string(), z.array(ResponseInputItem())]).nullish(),
  previous_response_id: z.string().min(1).nullish().describe('What came before the input: a stored response.'),
  instructions: z.string().nullish(),
}));

/** Body of `POST /v1/responses/compact`. */
export const ResponseCompactRequest = once(() =>
  z.looseObject({ ...input(), prompt_cache_key: z.string().max(64).nullish() }).meta({ id: 'ResponseCompactRequest' }),
);
export type ResponseCompactRequest = z.output<ReturnType<typeof ResponseCompactRequest>>;

/** Answer of `POST /v1/responses/compact`: items that take the place of the conversation in a new one. */
export const ResponseCompaction = once(() =>
  z
    .strictObject({
      id: z.string().startsWith('resp_'),
      object: z.literal('response.compaction'),
      created_at: z.int().describe('Seconds since the Unix epoch.'),
      output: z.array(
        z.strictObject({
          type: z.literal('compaction'),
          id: z.string().startsWith('cmp_'),
          encrypted_content: z.string().describe('The summary, encoded; send the item back as it is.'),
        }),
      ),
      usage: usage(),
    })
    .meta({ id: 'ResponseCompaction' }),
);
export type ResponseCompaction = z.output<ReturnType<typeof ResponseCompaction>>;

/** Body of `POST /v1/responses/input_tokens`. */
export const ResponseTokensRequest = once(() => z.looseObject(input()).meta({ id: 'ResponseTokensRequest' }));
export type ResponseTokensRequest = z.output<ReturnType<typeof ResponseTokensRequest>>;

/** Answer of `POST /v1/responses/input_tokens`. */
export const ResponseTokens = once(() =>
  z
    .strictObject({
      object: z.literal('response.input_tokens'),
      input_tokens: z.int().min(0).describe('An estimate, with the prompt and the tools of the agent; good to 20 %.'),
    })
    .meta({ id: 'ResponseTokens' }),
);

/** Answer of `GET /v1/responses/{id}/input_items`. */
export const ResponseInputItems = once(() =>
  z
    .strictObject({
      object: z.literal('list'),
      data: z.array(z.looseObject({ type: z.string(), id: z.string() })),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    })
    .meta({ id: 'ResponseInputItems' }),
);
export type ResponseInputItems = z.output<ReturnType<typeof ResponseInputItems>>;

/** A frame of the WebSocket on `/v1/responses` that is not an event of a response. */
export const ResponseSocketError = once(() =>
  z
    .strictObject({
      type: z.literal('error'),
      status: z.int().describe('The status that the same request would have had over HTTP.'),
      error: z.strictObject({ type: z.string(), code: z.string(), message: z.string(), param: z.string().nullable() }),
    })
    .meta({ id: 'ResponseSocketError' }),
);
export type ResponseSocketError = z.output<ReturnType<typeof ResponseSocketError>>;
