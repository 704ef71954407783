import * as z from 'zod';
import { once } from '../once.ts';
import { ReasoningEffort, ServiceTier, Verbosity } from './v1-harmless.ts';
import { FunctionName, ImageDetail } from './v1-responses-items.ts';
import { hostedToolError } from './v1-tool-types.ts';

// A history carries what other servers and SDKs wrote into it: unknown keys of messages and of their parts are ignored.
// Fields at the top of the body request something, and are accepted or refused by name.

/** Marks the end of a prefix that the next request repeats; providers that know such marks are sent it. */
export const CacheControl = once(() => z.object({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).nullish() }).meta({ id: 'CacheControl' }));
const cache_control = CacheControl().nullish();

const Text = once(() => z.object({ type: z.literal('text'), text: z.string(), cache_control }));
const Texts = once(() => z.union([z.string(), z.array(Text())]));
const Image = once(() =>
  z.object({
    type: z.literal('image_url'),
    image_url: z.object({ url: z.string().describe('A data: URL or an https: URL.'), detail: ImageDetail() }),
    cache_control,
  }),
);
const File = once(() =>
  z.object({
    type: z.literal('file'),
    file: z.object({
      filename: z.string().min(1).max(255).nullish(),
      file_data: z.string().describe('A data: URL, or base64 of a file whose name shows its type: a PDF or text.'),
    }),
    cache_control,
  }),
);
const Refusal = once(() => z.object({ type: z.literal('refusal'), refusal: z.string() }));
const name = once(() => z.string().min(1).max(128).nullish().describe('The speaker; put before the text.'));
const Call = once(() =>
  z.object({
    id: z.string().min(1).max(512),
    type: z.literal('function').nullish(),
    function: z.object({ name: z.string(), arguments: z.string() }),
  }),
);

/** A message of an extended completion. */
export const ExtendedChatMessage = once(() =>
  z
    .discriminatedUnion('role', [
      z.object({ role: z.literal('system'), content: Texts(), name: name(), cache_control }),
      z.object({ role: z.literal('developer'), content: Texts(), name: name(), cache_control }),
      z.object({
        role: z.literal('user'),
        content: z.union([z.string(), z.array(z.discriminatedUnion('type', [Text(), Image(), File()]))]),
        name: name(),
        cache_control,
      }),
      z.object({
        role: z.literal('assistant'),
        content: z.union([z.string(), z.array(z.discriminatedUnion('type', [Text(), Refusal()]))]).nullish(),
        name: name(),
        refusal: z.string().nullish(),
        tool_calls: z.array(Call()).nullish(),
        function_call: z.null('expected null: calls go into tool_calls').optional(),
        reasoning_content: z
          .string()
          .nullish()
          .describe('Reasoning of a model that wants it back with the next request; sent to providers that know it.'),
        reasoning: z.unknown().optional().describe('The same under its other name; ignored unless it is a string.'),
        cache_control,
      }),
      z.object({
        role: z.literal('tool'),
        content: z
          .union([z.string(), z.array(z.discriminatedUnion('type', [Text(), Image(), File()]))])
          .nullish()
          .describe('Images and files go to the model behind the results; a note replaces what the model cannot see.'),
        tool_call_id: z.string().min(1).max(512),
        name: name(),
        cache_control,
      }),
    ])
    .meta({ id: 'ExtendedChatMessage' }),
);
export type ExtendedChatMessage = z.output<ReturnType<typeof ExtendedChatMessage>>;

const FunctionTool = once(() =>
  z.strictObject({
    type: z.literal('function', { error: (issue) => hostedToolError(issue.input) }),
    cache_control,
    function: z.strictObject({
      name: FunctionName(),
      description: z.string().nullish(),
      parameters: z.record(z.string(), z.unknown()).nullish().describe('JSON Schema of the arguments.'),
      strict: z.boolean().nullish(),
    }),
  }),
);
const ToolChoice = once(() =>
  z.union([
    z.enum(['none', 'auto', 'required']),
    z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: FunctionName() }) }),
  ]),
);
const ResponseFormat = once(() =>
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('text') }),
    z.strictObject({ type: z.literal('json_object') }),
    z.strictObject({
      type: z.literal('json_schema'),
      json_schema: z.strictObject({
        name: FunctionName(),
        description: z.string().nullish(),
        schema: z.record(z.string(), z.unknown()).optional(),
        strict: z.boolean().nullish(),
      }),
    }),
  ]),
);
const Penalty = once(() => z.number().min(-2).max(2).nullish());
const maxTokens = once(() => z.int().min(1).nullish());

/** Body of `POST /v1/chat/completions` with `gateway.compat.fields: extended`: fields that clients send in addition to the strict set, as far as they can be honoured. */
export const ExtendedChatCompletionRequest = once(() =>
  z
    .strictObject({
      model: z.string().min(1).describe('provider/model, the bare model id, or an agent id.'),
      messages: z.array(ExtendedChatMessage()).min(1),
      stream: z.boolean().nullish(),
      stream_options: z
        .strictObject({
          include_usage: z.boolean().nullish().describe('The usage chunk is sent unless this is false.'),
          include_obfuscation: z.boolean().nullish().describe('Without effect: streams are not padded.'),
        })
        .nullish(),
      tools: z.array(FunctionTool()).max(128).nullish().describe('Functions that the caller runs itself.'),
      tool_choice: ToolChoice().nullish(),
      parallel_tool_calls: z.boolean().nullish(),
      temperature: z.number().min(0).max(2).nullish(),
      top_p: z.number().min(0).max(1).nullish(),
      presence_penalty: Penalty(),
      frequency_penalty: Penalty(),
      stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]).nullish(),
      seed: z.int().nullish(),
      max_tokens: maxTokens(),
      max_completion_tokens: maxTokens().describe('The newer name of `max_tokens`.'),
      response_format: ResponseFormat().nullish(),
      reasoning_effort: ReasoningEffort().nullish(),
      n: z.literal(1, 'expected 1: there is one answer').nullish(),
      logprobs: z.literal(false, 'expected false: there are no log probabilities').nullish(),
      store: z.literal(false, 'expected false: completions are not stored, responses (/v1/responses) are').nullish(),
      metadata: z.record(z.string(), z.string()).nullish().describe('Labels of stored completions: without use here.'),
      service_tier: ServiceTier().nullish(),
      verbosity: Verbosity().nullish(),
      modalities: z.array(z.literal('text', 'expected "text": answers are text')).nullish(),
      audio: z.null('expected null: answers are text').optional(),
      logit_bias: z.record(z.string(), z.never('cannot be biased')).nullish().describe('Only empty.'),
      top_logprobs: z.literal(0, 'expected 0: there are no log probabilities').nullish(),
      prediction: z.unknown().optional().describe('Without effect: it would only make the answer faster.'),
      prompt_cache_retention: z.string().nullish().describe('Without effect: the agent’s `cacheRetention` decides.'),
      user: z.string().max(512).nullish().describe('Passed on to providers that accept such an id.'),
      safety_identifier: z.string().max(512).nullish().describe('Takes precedence over `user`.'),
      prompt_cache_key: z.string().max(512).nullish().describe('Without use: the cache is found by the prompt itself.'),
    })
    .refine((body) => body.max_tokens == null || body.max_completion_tokens == null || body.max_tokens === body.max_completion_tokens, {
      path: ['max_completion_tokens'],
      message: 'expected the value of max_tokens, or only one of the two',
    })
    .meta({ id: 'ExtendedChatCompletionRequest' }),
);
export type ExtendedChatCompletionRequest = z.output<ReturnType<typeof ExtendedChatCompletionRequest>>;
