import * as z from 'zod';
import { ChatToolCall } from './v1-chat.ts';
import { FunctionName } from './v1-responses-items.ts';

const Text = z.strictObject({ type: z.literal('text'), text: z.string() });
const Texts = z.union([z.string(), z.array(Text)]);
const Image = z.strictObject({
  type: z.literal('image_url'),
  image_url: z.strictObject({
    url: z.string().describe('A data: URL or an https: URL.'),
    detail: z.enum(['low', 'high', 'auto']).nullish().describe('For providers that take such a hint.'),
  }),
});
const File = z.strictObject({
  type: z.literal('file'),
  file: z.strictObject({
    filename: z.string().min(1).max(255).nullish(),
    file_data: z.string().describe('A data: URL, or base64 of a file whose name tells its type: a PDF or text.'),
  }),
});
const Refusal = z.strictObject({ type: z.literal('refusal'), refusal: z.string() });
const name = z.string().min(1).max(128).nullish().describe('Who speaks; stands before the text.');

/** A message of an extended completion. */
export const ExtendedChatMessage = z
  .discriminatedUnion('role', [
    z.strictObject({ role: z.literal('system'), content: Texts, name }),
    z.strictObject({ role: z.literal('developer'), content: Texts, name }),
    z.strictObject({
      role: z.literal('user'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [Text, Image, File]))]),
      name,
    }),
    z.strictObject({
      role: z.literal('assistant'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [Text, Refusal]))]).nullish(),
      name,
      refusal: z.string().nullish(),
      tool_calls: z.array(ChatToolCall).min(1).nullish(),
    }),
    z.strictObject({ role: z.literal('tool'), content: Texts, tool_call_id: z.string().min(1).max(512), name }),
  ])
  .meta({ id: 'ExtendedChatMessage' });
export type ExtendedChatMessage = z.output<typeof ExtendedChatMessage>;

const FunctionTool = z.strictObject({
  type: z.literal('function', {
    error: (issue) => `only tools of type "function" can be offered, received ${JSON.stringify(issue.input) ?? 'none'}`,
  }),
  function: z.strictObject({
    name: FunctionName,
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish().describe('JSON Schema of the arguments.'),
    strict: z.boolean().nullish(),
  }),
});
const ToolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: FunctionName }) }),
]);
const ResponseFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({
    type: z.literal('json_schema'),
    json_schema: z.strictObject({
      name: FunctionName,
      description: z.string().nullish(),
      schema: z.record(z.string(), z.unknown()).optional(),
      strict: z.boolean().nullish(),
    }),
  }),
]);
const Penalty = z.number().min(-2).max(2).nullish();
const maxTokens = z.int().min(1).nullish();

/** Body of `POST /v1/chat/completions` with `gateway.compat.fields: extended`: what clients send beside the strict set, as far as it can be honoured. */
export const ExtendedChatCompletionRequest = z
  .strictObject({
    model: z.string().min(1).describe('provider/model, the bare model id, or an agent id.'),
    messages: z.array(ExtendedChatMessage).min(1),
    stream: z.boolean().nullish(),
    stream_options: z
      .strictObject({
        include_usage: z.boolean().nullish().describe('The usage chunk is sent unless this is false.'),
        include_obfuscation: z.literal(false, 'expected false: streams are not padded').nullish(),
      })
      .nullish(),
    tools: z.array(FunctionTool).max(128).nullish().describe('Functions that the caller runs itself.'),
    tool_choice: ToolChoice.nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    presence_penalty: Penalty,
    frequency_penalty: Penalty,
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]).nullish(),
    seed: z.int().nullish(),
    max_tokens: maxTokens,
    max_completion_tokens: maxTokens.describe('The newer name of `max_tokens`.'),
    response_format: ResponseFormat.nullish(),
    reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).nullish(),
    n: z.literal(1, 'expected 1: there is one answer').nullish(),
    logprobs: z.literal(false, 'expected false: there are no log probabilities').nullish(),
    store: z.literal(false, 'expected false: completions are not stored, responses (/v1/responses) are').nullish(),
    metadata: z.record(z.string(), z.string()).nullish().describe('Labels of stored completions: without use here.'),
    service_tier: z.enum(['auto', 'default'], 'expected "auto" or "default": there is one tier').nullish(),
    user: z.string().max(512).nullish().describe('The provider is told it where it takes such an id.'),
    safety_identifier: z.string().max(512).nullish().describe('Stands before `user`.'),
    prompt_cache_key: z.string().max(512).nullish().describe('Without use: the cache is found by the prompt itself.'),
  })
  .refine((body) => body.max_tokens == null || body.max_completion_tokens == null || body.max_tokens === body.max_completion_tokens, {
    path: ['max_completion_tokens'],
    message: 'expected the value of max_tokens, or only one of the two',
  })
  .meta({ id: 'ExtendedChatCompletionRequest' });
export type ExtendedChatCompletionRequest = z.output<typeof ExtendedChatCompletionRequest>;
