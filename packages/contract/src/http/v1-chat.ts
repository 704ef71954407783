import * as z from 'zod';
import { once } from '../once.ts';

const TextBlock = z.strictObject({ type: z.literal('text'), text: z.string() });

/** The words with which the refusal of an image begins (http-gateway.md §2.1, rule 6). */
export const imageNotSupported = 'vision input (image_url) is not yet supported via the /v1 chat completions endpoint';

export const ChatMessage = once(() =>
  z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.union([z.string(), z.array(TextBlock)]) }).meta({ id: 'ChatMessage' }),
);
export type ChatMessage = z.output<ReturnType<typeof ChatMessage>>;

/** Body of `POST /v1/chat/completions` (http-gateway.md §2.1). */
export const ChatCompletionRequest = once(() =>
  z
    .strictObject({
      model: z.string().min(1).describe('provider/model, the bare model id, or an agent id.'),
      messages: z.array(ChatMessage()).min(1),
      stream: z.boolean().default(false),
      temperature: z.number().min(0).max(2).optional(),
      max_tokens: z.int().min(1).optional(),
      stream_options: z.strictObject({ include_usage: z.boolean().optional().describe('The usage chunk is sent unless this is false.') }).optional(),
    })
    .meta({ id: 'ChatCompletionRequest' }),
);
export type ChatCompletionRequest = z.output<ReturnType<typeof ChatCompletionRequest>>;

export const CompletionUsage = once(() =>
  z.strictObject({ prompt_tokens: z.int().min(0), completion_tokens: z.int().min(0), total_tokens: z.int().min(0) }).meta({ id: 'CompletionUsage' }),
);

export const CompletionFinishReason = z.enum(['stop', 'length', 'tool_calls']);

/** A call of one of the caller's functions; only with `gateway.compat.fields: extended`. */
export const ChatToolCall = once(() =>
  z
    .strictObject({
      id: z.string().min(1).max(512),
      type: z.literal('function'),
      function: z.strictObject({ name: z.string(), arguments: z.string() }),
    })
    .meta({ id: 'ChatToolCall' }),
);

/** Answer of `POST /v1/chat/completions` when not streamed (http-gateway.md §2.2). */
export const ChatCompletion = once(() =>
  z
    .strictObject({
      id: z.string().startsWith('chatcmpl-'),
      object: z.literal('chat.completion'),
      created: z.int(),
      model: z.string(),
      choices: z
        .array(
          z.strictObject({
            index: z.literal(0),
            message: z.strictObject({
              role: z.literal('assistant'),
              content: z.string().nullable().describe('Null when the answer is tool calls alone.'),
              tool_calls: z.array(ChatToolCall()).optional(),
            }),
            finish_reason: CompletionFinishReason,
          }),
        )
        .length(1),
      usage: CompletionUsage(),
    })
    .meta({ id: 'ChatCompletion' }),
);
export type ChatCompletion = z.output<ReturnType<typeof ChatCompletion>>;

/** One data line of a streamed completion (http-gateway.md §2.3, §3). */
export const ChatCompletionChunk = once(() =>
  z
    .strictObject({
      id: z.string().startsWith('chatcmpl-'),
      object: z.literal('chat.completion.chunk'),
      created: z.int(),
      model: z.string(),
      choices: z
        .array(
          z.strictObject({
            index: z.literal(0),
            delta: z.strictObject({
              role: z.literal('assistant').optional(),
              content: z.string().optional(),
              tool_calls: z
                .array(ChatToolCall().extend({ index: z.int().min(0) }))
                .length(1)
                .optional(),
            }),
            finish_reason: CompletionFinishReason.nullable(),
          }),
        )
        .max(1),
      usage: CompletionUsage().optional(),
      gatehouse: z.strictObject({ finish_reason: z.string() }).optional().describe('Only when asked for by the header x-gatehouse-extensions: 1.'),
    })
    .meta({ id: 'ChatCompletionChunk' }),
);
export type ChatCompletionChunk = z.output<ReturnType<typeof ChatCompletionChunk>>;
