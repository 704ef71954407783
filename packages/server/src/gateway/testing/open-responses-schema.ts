import * as z from 'zod';

// The published schemas of Open Responses (openresponses.org, specification of 2026-04-24), transcribed from it independently
// of this project's contract: every response must fit both. Additional keys are allowed, as they are there.

const text = z.string();
const int = z.int();
const status = z.enum(['in_progress', 'completed', 'incomplete']);

const urlCitation = z.object({ type: z.literal('url_citation'), url: text, start_index: int, end_index: int, title: text });
const logProb = z.object({ token: text, logprob: z.number(), bytes: z.array(int), top_logprobs: z.array(z.unknown()) });
const contentPart = z.discriminatedUnion('type', [
  z.object({ type: z.literal('input_text'), text }),
  z.object({ type: z.literal('output_text'), text, annotations: z.array(urlCitation), logprobs: z.array(logProb).optional() }),
  z.object({ type: z.literal('refusal'), refusal: text }),
]);
const item = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('message'),
    id: text,
    status,
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.array(contentPart),
  }),
  z.object({ type: z.literal('function_call'), id: text, call_id: text, name: text, arguments: text, status }),
  z.object({ type: z.literal('function_call_output'), id: text, call_id: text, output: z.union([text, z.array(contentPart)]), status }),
]);

const toolMode = z.enum(['none', 'auto', 'required']);
const functionChoice = z.object({ type: z.literal('function'), name: text.optional() });

export const publishedResponse = z.object({
  id: text,
  object: z.literal('response'),
  created_at: int,
  completed_at: int.nullable(),
  status: text,
  incomplete_details: z.object({ reason: text }).nullable(),
  model: text,
  previous_response_id: text.nullable(),
  instructions: text.nullable(),
  output: z.array(item),
  error: z.object({ code: text, message: text }).nullable(),
  tools: z.array(
    z.object({
      type: z.literal('function'),
      name: text,
      description: text.nullable(),
      parameters: z.record(text, z.unknown()).nullable(),
      strict: z.boolean().nullable(),
    }),
  ),
  tool_choice: z.union([toolMode, functionChoice, z.object({ type: z.literal('allowed_tools'), tools: z.array(functionChoice), mode: toolMode })]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.object({
    format: z.discriminatedUnion('type', [
      z.object({ type: z.literal('text') }),
      z.object({ type: z.literal('json_object') }),
      z.object({
        type: z.literal('json_schema'),
        name: text,
        description: text.nullable(),
        schema: z.record(text, z.unknown()).nullable(),
        strict: z.boolean(),
      }),
    ]),
    verbosity: z.enum(['low', 'medium', 'high']).optional(),
  }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: int,
  temperature: z.number(),
  reasoning: z
    .object({
      effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).nullable(),
      summary: z.enum(['concise', 'detailed', 'auto']).nullable(),
    })
    .nullable(),
  user: text.nullable(),
  usage: z
    .object({
      input_tokens: int,
      output_tokens: int,
      total_tokens: int,
      input_tokens_details: z.object({ cached_tokens: int }),
      output_tokens_details: z.object({ reasoning_tokens: int }),
    })
    .nullable(),
  max_output_tokens: int.nullable(),
  max_tool_calls: int.nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: text,
  metadata: z.record(text, text),
  safety_identifier: text.nullable(),
  prompt_cache_key: text.nullable(),
});

const numbered = { sequence_number: int };
const atItem = { ...numbered, output_index: int };
const inItem = { ...atItem, item_id: text };
const inPart = { ...inItem, content_index: int };
const ofResponse = <Type extends string>(type: Type) => z.object({ type: z.literal(type), ...numbered, response: publishedResponse });

export const publishedEvent = z.discriminatedUnion('type', [
  ofResponse('response.created'),
  ofResponse('response.in_progress'),
  ofResponse('response.completed'),
  ofResponse('response.failed'),
  ofResponse('response.incomplete'),
  z.object({ type: z.literal('response.output_item.added'), ...atItem, item: item.nullable() }),
  z.object({ type: z.literal('response.output_item.done'), ...atItem, item: item.nullable() }),
  z.object({ type: z.literal('response.content_part.added'), ...inPart, part: contentPart }),
  z.object({ type: z.literal('response.content_part.done'), ...inPart, part: contentPart }),
  z.object({ type: z.literal('response.output_text.delta'), ...inPart, delta: text, logprobs: z.array(logProb).optional() }),
  z.object({ type: z.literal('response.output_text.done'), ...inPart, text, logprobs: z.array(logProb).optional() }),
  z.object({ type: z.literal('response.function_call_arguments.delta'), ...inItem, delta: text }),
  z.object({ type: z.literal('response.function_call_arguments.done'), ...inItem, arguments: text }),
]);
export type PublishedEvent = z.output<typeof publishedEvent>;
