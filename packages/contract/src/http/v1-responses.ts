import * as z from 'zod';
import { once } from '../once.ts';
import { ReasoningEffort, ServiceTier, Verbosity } from './v1-harmless.ts';
import { FunctionName, Namespace, ResponseInputItem, ResponseOutputItem } from './v1-responses-items.ts';
import { hostedToolError } from './v1-tool-types.ts';

const FunctionTool = once(() =>
  z.object({
    type: z.literal('function'),
    name: FunctionName(),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish().describe('JSON Schema of the arguments.'),
    strict: z.boolean().nullish(),
  }),
);

const onlyFunctions = (issue: { readonly input?: unknown }): string => {
  const type: unknown = typeof issue.input === 'object' && issue.input !== null ? Reflect.get(issue.input, 'type') : undefined;
  return hostedToolError(type);
};
const NamespaceTool = once(() =>
  z
    .object({
      type: z.literal('namespace'),
      name: Namespace(),
      tools: z.array(z.discriminatedUnion('type', [FunctionTool()], { error: onlyFunctions })),
    })
    .describe('Each function is offered as `<namespace>__<name>`; calls of it name both.'),
);

const ToolMode = once(() => z.enum(['none', 'auto', 'required']));
const NamedTool = once(() => z.strictObject({ type: z.literal('function'), name: FunctionName(), namespace: Namespace().nullish() }));
const AllowedTools = once(() => z.strictObject({ type: z.literal('allowed_tools'), mode: ToolMode(), tools: z.array(NamedTool()).min(1).max(128) }));

const TextFormat = once(() =>
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('text') }),
    z.strictObject({ type: z.literal('json_object') }),
    z.strictObject({
      type: z.literal('json_schema'),
      name: FunctionName(),
      description: z.string().nullish(),
      schema: z.record(z.string(), z.unknown()),
      strict: z.boolean().nullish(),
    }),
  ]),
);

const Effort = once(() => z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']));
const Summary = once(() => z.enum(['auto', 'concise', 'detailed']));
const Penalty = once(() => z.number().min(-2).max(2));
const Metadata = once(() =>
  z.record(z.string().max(64), z.string().max(512)).refine((pairs) => Object.keys(pairs).length <= 16, 'expected at most 16 pairs'),
);

/** What would add to the answer things that there never are is honoured by their absence; log probabilities would be missed. */
const Include = once(() =>
  z.enum(
    [
      'reasoning.encrypted_content',
      'web_search_call.action.sources',
      'web_search_call.results',
      'file_search_call.results',
      'code_interpreter_call.outputs',
      'computer_call_output.output.image_url',
      'message.input_image.image_url',
    ],
    { error: (issue) => `cannot be included: ${JSON.stringify(issue.input)}` },
  ),
);

/** Body of `POST /v1/responses`: the Open Responses request, without what cannot be honoured (decisions §3). */
export const ResponseRequest = once(() =>
  z
    .strictObject({
      model: z.string().min(1).describe('provider/model, the bare model id, or an agent id.'),
      input: z.union([z.string(), z.array(ResponseInputItem()).min(1)]),
      instructions: z.string().nullish().describe('System text of this response alone; one that follows it does not take it over.'),
      previous_response_id: z.string().min(1).nullish().describe('Continues the conversation from this stored response.'),
      store: z.boolean().nullish().describe('Keep the response for 30 days; true when absent.'),
      stream: z.boolean().nullish(),
      stream_options: z.strictObject({ include_obfuscation: z.boolean().nullish().describe('Without effect: streams are not padded.') }).nullish(),
      background: z.literal(false, 'expected false: there are no background responses').nullish(),
      tools: z
        .array(z.discriminatedUnion('type', [FunctionTool(), NamespaceTool()], { error: onlyFunctions }))
        .max(128)
        .nullish()
        .describe('Functions that the caller runs itself.'),
      tool_choice: z.union([ToolMode(), NamedTool(), AllowedTools()]).nullish(),
      parallel_tool_calls: z.boolean().nullish(),
      max_tool_calls: z.int().min(1).nullish().describe('Comes back with the response; it counts hosted tools, of which there are none.'),
      max_output_tokens: z.int().min(1).nullish(),
      temperature: z.number().min(0).max(2).nullish(),
      top_p: z.number().min(0).max(1).nullish(),
      presence_penalty: Penalty().nullish(),
      frequency_penalty: Penalty().nullish(),
      top_logprobs: z.literal(0, 'expected 0: there are no log probabilities').nullish(),
      text: z
        .strictObject({
          format: TextFormat().nullish(),
          verbosity: Verbosity().nullish(),
        })
        .nullish(),
      reasoning: z
        .strictObject({ effort: ReasoningEffort().nullish(), summary: Summary().nullish(), generate_summary: Summary().nullish() })
        .nullish(),
      truncation: z
        .enum(['auto', 'disabled'])
        .nullish()
        .describe('`auto` leaves the oldest items out when the conversation does not fit, and says how many; `disabled`, the default, answers 400.'),
      include: z.array(Include()).nullish(),
      metadata: Metadata().nullish().describe('Comes back with the response.'),
      user: z.string().max(512).nullish(),
      safety_identifier: z.string().max(64).nullish().describe('Takes precedence over `user`; sent to providers that accept such an id.'),
      prompt_cache_key: z.string().max(64).nullish().describe('Comes back with the response; the cache is found by the prompt itself.'),
      service_tier: ServiceTier().nullish(),
      prompt_cache_retention: z.string().nullish().describe('Without effect: the agent’s `cacheRetention` decides.'),
      client_metadata: z.record(z.string(), z.unknown()).nullish().describe('What a client says of itself; not used.'),
    })
    .meta({ id: 'ResponseRequest' }),
);
export type ResponseRequest = z.output<ReturnType<typeof ResponseRequest>>;

const ResponseTool = once(() =>
  z.strictObject({
    type: z.literal('function'),
    name: z.string(),
    description: z.string().nullable(),
    parameters: z.record(z.string(), z.unknown()).nullable(),
    strict: z.boolean().nullable(),
  }),
);

/** Answer of `POST /v1/responses` and of `GET /v1/responses/{id}`: the response object of Open Responses, every key present. */
export const ResponseObject = once(() =>
  z
    .strictObject({
      id: z.string().startsWith('resp_'),
      object: z.literal('response'),
      created_at: z.int().describe('Seconds since the Unix epoch.'),
      completed_at: z.int().nullable(),
      status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
      incomplete_details: z
        .strictObject({ reason: z.string().describe('max_output_tokens, or the reason for which the turn ended early.') })
        .nullable(),
      error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
      model: z.string(),
      previous_response_id: z.string().nullable(),
      instructions: z.string().nullable(),
      output: z.array(ResponseOutputItem()),
      tools: z.array(ResponseTool()),
      tool_choice: z.union([ToolMode(), NamedTool(), AllowedTools()]),
      parallel_tool_calls: z.boolean(),
      max_tool_calls: z.int().nullable(),
      max_output_tokens: z.int().nullable(),
      temperature: z.number(),
      top_p: z.number(),
      presence_penalty: z.number(),
      frequency_penalty: z.number(),
      top_logprobs: z.literal(0),
      text: z.strictObject({
        format: z.discriminatedUnion('type', [
          z.strictObject({ type: z.literal('text') }),
          z.strictObject({ type: z.literal('json_object') }),
          z.strictObject({
            type: z.literal('json_schema'),
            name: z.string(),
            description: z.string().nullable(),
            schema: z.record(z.string(), z.unknown()),
            strict: z.boolean(),
          }),
        ]),
        verbosity: Verbosity(),
      }),
      reasoning: z.strictObject({ effort: Effort().nullable(), summary: Summary().nullable() }),
      truncation: z.enum(['auto', 'disabled']),
      store: z.boolean(),
      background: z.literal(false),
      service_tier: z.literal('default'),
      metadata: z.record(z.string(), z.string()),
      user: z.string().nullable(),
      safety_identifier: z.string().nullable(),
      prompt_cache_key: z.string().nullable(),
      usage: z
        .strictObject({
          input_tokens: z.int(),
          input_tokens_details: z.strictObject({ cached_tokens: z.int() }),
          output_tokens: z.int(),
          output_tokens_details: z.strictObject({ reasoning_tokens: z.int().describe('Always 0: they are counted among the output, not apart.') }),
          total_tokens: z.int(),
        })
        .nullable(),
      gatehouse: z
        .strictObject({ left_out_messages: z.int().describe('Messages of the conversation that the model was not sent, or not whole.') })
        .optional()
        .describe('Only with `truncation: auto`, when something was left out.'),
    })
    .meta({ id: 'ResponseObject' }),
);
export type ResponseObject = z.output<ReturnType<typeof ResponseObject>>;

/** Answer of `DELETE /v1/responses/{id}`. */
export const ResponseDeleted = once(() =>
  z.strictObject({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) }).meta({ id: 'ResponseDeleted' }),
);
