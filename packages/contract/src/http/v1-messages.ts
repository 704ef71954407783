import * as z from 'zod';
import { once } from '../once.ts';
import { V1Error } from './v1-error.ts';
import { FunctionName } from './v1-responses-items.ts';

const CacheControl = once(() =>
  z
    .looseObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).nullish() })
    .nullish()
    .describe('Passed on to providers that support it.'),
);
const cache = { cache_control: CacheControl() };

/** Histories come from other servers and newer clients: unknown keys are accepted. */
const TextBlock = once(() => z.looseObject({ type: z.literal('text'), text: z.string(), ...cache }));
const Base64Source = once(() => z.looseObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() }));
const UrlSource = once(() => z.looseObject({ type: z.literal('url'), url: z.string() }));
const ImageBlock = once(() =>
  z.looseObject({
    type: z.literal('image'),
    source: z.discriminatedUnion('type', [Base64Source(), UrlSource()], { error: 'expected a source of type "base64" or "url"' }),
    ...cache,
  }),
);
const DocumentBlock = once(() =>
  z.looseObject({
    type: z.literal('document'),
    source: z.discriminatedUnion(
      'type',
      [
        Base64Source(),
        z.looseObject({ type: z.literal('text'), data: z.string() }),
        z.looseObject({
          type: z.literal('content'),
          content: z.union([z.string(), z.array(z.discriminatedUnion('type', [TextBlock(), ImageBlock()]))]),
        }),
      ],
      { error: 'expected a source of type "base64", "text" or "content"' },
    ),
    title: z.string().nullish(),
    context: z.string().nullish(),
    ...cache,
  }),
);
const CallId = once(() => z.string().min(1).max(512));
const ToolResult = once(() =>
  z.looseObject({
    type: z.literal('tool_result'),
    tool_use_id: CallId(),
    content: z.union([z.string(), z.array(z.discriminatedUnion('type', [TextBlock(), ImageBlock(), DocumentBlock()]))]).nullish(),
    is_error: z.boolean().nullish(),
    ...cache,
  }),
);
const ToolUse = once(() =>
  z.looseObject({ type: z.literal('tool_use'), id: CallId(), name: FunctionName(), input: z.record(z.string(), z.unknown()), ...cache }),
);
const Thinking = once(() => z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().nullish() }));
const RedactedThinking = once(() => z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() }));

/** One message of `POST /v1/messages`. */
export const MessageParam = once(() =>
  z
    .discriminatedUnion('role', [
      z.looseObject({
        role: z.literal('user'),
        content: z.union([z.string(), z.array(z.discriminatedUnion('type', [TextBlock(), ImageBlock(), DocumentBlock(), ToolResult()]))]),
      }),
      z.looseObject({
        role: z.literal('assistant'),
        content: z.union([z.string(), z.array(z.discriminatedUnion('type', [TextBlock(), ToolUse(), Thinking(), RedactedThinking()]))]),
      }),
      z
        .looseObject({ role: z.literal('system'), content: z.union([z.string(), z.array(TextBlock())]) })
        .describe('Instructions within the conversation; they are added to `system`.'),
    ])
    .meta({ id: 'MessageParam' }),
);
export type MessageParam = z.output<ReturnType<typeof MessageParam>>;

const ToolParam = once(() =>
  z.looseObject({
    type: z
      .literal('custom', {
        error: (issue) =>
          `the tool type ${JSON.stringify(issue.input) ?? 'none'} runs at its provider and cannot be offered here; send tools with an input_schema, and turn the others off in the client (Claude Code: add WebSearch to permissions.deny)`,
      })
      .nullish(),
    name: FunctionName(),
    description: z.string().nullish(),
    input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the arguments.'),
    strict: z.boolean().nullish(),
    ...cache,
  }),
);

const oneAtATime = once(() => ({ disable_parallel_tool_use: z.boolean().nullish() }));
const ToolChoice = once(() =>
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('auto'), ...oneAtATime() }),
    z.strictObject({ type: z.literal('any'), ...oneAtATime() }),
    z.strictObject({ type: z.literal('tool'), name: FunctionName(), ...oneAtATime() }),
    z.strictObject({ type: z.literal('none') }),
  ]),
);
const ThinkingParam = once(() =>
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1_024) }),
    z.looseObject({ type: z.literal('adaptive') }),
    z.looseObject({ type: z.literal('disabled') }),
  ]),
);
const JsonFormat = once(() => z.looseObject({ type: z.literal('json_schema'), schema: z.record(z.string(), z.unknown()) }));

/** Fields that determine the input of the model, and so its tokens. */
const input = once(() => ({
  model: z.string().min(1).describe('provider/model, the bare model id, an agent id, or a name of gateway.compat.models.'),
  messages: z.array(MessageParam()).min(1),
  system: z.union([z.string(), z.array(TextBlock())]).nullish(),
  tools: z.array(ToolParam()).max(128).nullish().describe('Functions that the caller runs itself.'),
  tool_choice: ToolChoice().nullish(),
  thinking: ThinkingParam().nullish().describe('Models whose provider does not return signed reasoning answer without thinking blocks.'),
  output_config: z
    .strictObject({
      effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).nullish().describe('A hint for providers that accept one.'),
      format: JsonFormat().nullish(),
    })
    .nullish(),
  output_format: JsonFormat().nullish().describe('The older name of `output_config.format`.'),
  cache_control: CacheControl(),
  context_management: z.looseObject({}).nullish().describe('Without effect: the messages are sent as they are.'),
  mcp_servers: z.array(z.unknown()).max(0, 'expected none: configure MCP servers for the agent').nullish(),
}));

/** Body of `POST /v1/messages`: a request in the shape of Anthropic's Messages API, without what cannot be honored. */
export const MessagesRequest = once(() =>
  z
    .strictObject({
      ...input(),
      max_tokens: z.int().min(1).describe('Reduced to the maximum of the model.'),
      stream: z.boolean().nullish(),
      temperature: z.number().min(0).max(1).nullish(),
      top_p: z.number().min(0).max(1).nullish(),
      top_k: z.int().min(0).nullish(),
      stop_sequences: z.array(z.string().min(1)).max(64).nullish(),
      metadata: z.looseObject({ user_id: z.string().max(512).nullish().describe('Passed on to providers that accept such an id.') }).nullish(),
      service_tier: z.enum(['auto', 'standard_only'], 'expected "auto" or "standard_only": there is one tier').nullish(),
      container: z.null('containers are not offered').optional(),
      inference_geo: z.null('the place of inference cannot be chosen').optional(),
      speed: z.literal('standard', 'expected "standard": there is one speed').nullish(),
    })
    .meta({ id: 'MessagesRequest' }),
);
export type MessagesRequest = z.output<ReturnType<typeof MessagesRequest>>;

/** Body of `POST /v1/messages/count_tokens`. */
export const CountTokensRequest = once(() => z.strictObject(input()).meta({ id: 'CountTokensRequest' }));

/** Answer of `POST /v1/messages/count_tokens`. */
export const TokenCount = once(() =>
  z
    .strictObject({ input_tokens: z.int().min(0).describe('An estimate, with the prompt and the tools of the agent; good to 20 %.') })
    .meta({ id: 'MessageTokensCount' }),
);

export const MessageStopReason = once(() =>
  z.enum(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal', 'model_context_window_exceeded']),
);

const AnswerBlock = once(() =>
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('text'), text: z.string(), citations: z.null() }),
    z.strictObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) }),
    z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
    z.strictObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  ]),
);
export type AnswerBlock = z.output<ReturnType<typeof AnswerBlock>>;

const tokens = once(() => z.int().min(0));
export const MessageUsage = once(() =>
  z.strictObject({
    input_tokens: tokens().describe('Without tokens read from or written to the cache.'),
    cache_creation_input_tokens: tokens(),
    cache_read_input_tokens: tokens(),
    output_tokens: tokens(),
  }),
);

/** Answer of `POST /v1/messages` when not streamed. */
export const MessageObject = once(() =>
  z
    .strictObject({
      id: z.string().startsWith('msg_'),
      type: z.literal('message'),
      role: z.literal('assistant'),
      model: z.string(),
      content: z.array(AnswerBlock()),
      stop_reason: MessageStopReason().nullable(),
      stop_sequence: z.string().nullable(),
      usage: MessageUsage(),
    })
    .meta({ id: 'Message' }),
);
export type MessageObject = z.output<ReturnType<typeof MessageObject>>;

/** Body of every failure of `/v1/messages`; it has the keys of both error formats that its clients know. */
export const MessagesError = once(() =>
  z.strictObject({ type: z.literal('error'), error: V1Error().shape.error, request_id: z.string() }).meta({ id: 'MessagesError' }),
);
export type MessagesError = z.output<ReturnType<typeof MessagesError>>;

const index = once(() => z.int().min(0));

/** Data of one event of a streamed message; `event:` says the same as `type`. */
export const MessageStreamEvent = once(() =>
  z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('message_start'), message: MessageObject() }),
      z.strictObject({ type: z.literal('ping') }),
      z.strictObject({ type: z.literal('content_block_start'), index: index(), content_block: AnswerBlock() }),
      z.strictObject({
        type: z.literal('content_block_delta'),
        index: index(),
        delta: z.discriminatedUnion('type', [
          z.strictObject({ type: z.literal('text_delta'), text: z.string() }),
          z.strictObject({ type: z.literal('thinking_delta'), thinking: z.string() }),
          z.strictObject({ type: z.literal('signature_delta'), signature: z.string() }),
          z.strictObject({ type: z.literal('input_json_delta'), partial_json: z.string() }),
        ]),
      }),
      z.strictObject({ type: z.literal('content_block_stop'), index: index() }),
      z.strictObject({
        type: z.literal('message_delta'),
        delta: z.strictObject({ stop_reason: MessageStopReason(), stop_sequence: z.string().nullable() }),
        usage: MessageUsage(),
      }),
      z.strictObject({ type: z.literal('message_stop') }),
      MessagesError(),
    ])
    .meta({ id: 'MessageStreamEvent' }),
);
export type MessageStreamEvent = z.output<ReturnType<typeof MessageStreamEvent>>;
