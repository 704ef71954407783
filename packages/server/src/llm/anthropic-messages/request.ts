import type { ModelMessage, ModelPart, ModelRequest, ThinkingBlock } from '../model.ts';
import { readDataUrl } from '../wire/data-url.ts';
import { toolCallId } from '../wire/tool-call-id.ts';

type Block = Record<string, unknown>;

/** Smallest reasoning budget that the API accepts. */
const leastThinkingTokens = 1_024;

/** The API accepts four marks; the system prompt has two of them. */
const maxMessageMarks = 2;

/**
 * Returns the JSON body of one call. Cache marks end the prefixes that the next call repeats (tools and first system part, whole
 * system prompt, conversation so far), or are where the caller set them.
 */
export function messagesBody(request: ModelRequest, stream: boolean): string {
  const mark =
    request.cacheRetention === 'none'
      ? {}
      : { cache_control: request.cacheRetention === 'long' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' } };
  const parts = request.system.filter((part) => part.trim() !== '');
  const system = parts.map((text, i) => ({ type: 'text', text: text.toWellFormed(), ...(i === 0 || i === parts.length - 1 ? mark : {}) }));
  const marked = request.messages.filter((message) => message.cacheMark === true).slice(-maxMessageMarks);
  // The agent decides the duration, also for the caller's marks: a longer one must not follow a shorter one.
  const callersMark = 'cache_control' in mark ? mark : { cache_control: { type: 'ephemeral' } };
  const systemEnd = system.at(-1);
  if (systemEnd !== undefined && request.options?.systemCacheMark === true) Object.assign(systemEnd, callersMark);
  const messages = wireMessages(request.messages, (message) => (marked.includes(message) ? callersMark : {}));
  const lastBlock = messages.at(-1)?.content.at(-1);
  if (lastBlock !== undefined && marked.length === 0) Object.assign(lastBlock, mark);
  const maxTokens = request.maxTokens ?? request.model.maxTokens;
  const thinking = wireThinking(thinkingOf(request), maxTokens);
  const isThinking = thinking !== undefined && thinking['type'] !== 'disabled';
  return JSON.stringify({
    model: request.model.modelId,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system }),
    messages,
    // The API accepts no temperature with reasoning; the one here may be the agent's.
    ...(request.temperature === undefined || isThinking ? {} : { temperature: request.temperature }),
    ...(thinking === undefined ? {} : { thinking }),
    ...wireTools(request),
    ...(request.options === undefined ? {} : wireOptions(request)),
    stream,
  });
}

/** Tokens of reasoning for each effort: the smallest useful budget, a usual one, and one for hard questions. */
const depthTokens = { low: 2_048, medium: 8_192, high: 24_576 } as const;

/** The caller's own wish counts; an effort is a budget for models that reason. */
function thinkingOf({ options = {}, model }: ModelRequest): NonNullable<ModelRequest['options']>['thinking'] {
  if (options.thinking !== undefined || options.depth === undefined || !model.reasoning) return options.thinking;
  return { type: 'enabled', budgetTokens: depthTokens[options.depth] };
}

/** The budget is part of the answer's length: when a limit shortens the answer, the budget shrinks with it, or reasoning is omitted. */
function wireThinking(thinking: NonNullable<ModelRequest['options']>['thinking'], maxTokens: number): Record<string, unknown> | undefined {
  if (thinking?.type !== 'enabled') return thinking;
  const budget = thinking.budgetTokens < maxTokens ? thinking.budgetTokens : Math.floor(maxTokens / 2);
  return budget < leastThinkingTokens ? undefined : { type: 'enabled', budget_tokens: budget };
}

/** The API refuses calls in a conversation whose request declares no tools: in that case declares the called ones and forbids calls. */
function wireTools({ tools, messages }: ModelRequest): Record<string, unknown> {
  if (tools.length > 0) return { tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })) };
  const called = new Set(messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []).map((call) => call.name) : [])));
  if (called.size === 0) return {};
  return { tools: [...called].map((name) => ({ name, input_schema: { type: 'object' } })), tool_choice: { type: 'none' } };
}

function wireOptions({ options = {}, tools }: ModelRequest): Record<string, unknown> {
  const { responseFormat } = options;
  const choice = tools.length === 0 ? undefined : wireToolChoice(options);
  const output = {
    ...(responseFormat?.type === 'json_schema' && { format: { type: 'json_schema', schema: responseFormat.schema } }),
    ...(options.effort !== undefined && { effort: options.effort }),
  };
  return {
    ...(options.topP === undefined ? {} : { top_p: options.topP }),
    ...(options.topK === undefined ? {} : { top_k: options.topK }),
    ...(options.stop === undefined || options.stop.length === 0 ? {} : { stop_sequences: options.stop }),
    ...(options.endUser === undefined ? {} : { metadata: { user_id: options.endUser } }),
    ...(Object.keys(output).length === 0 ? {} : { output_config: output }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

function wireToolChoice({ toolChoice, parallelToolCalls }: NonNullable<ModelRequest['options']>): unknown {
  if (toolChoice === 'none') return { type: 'none' };
  const oneAtATime = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {};
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.name, ...oneAtATime };
  if (toolChoice === 'required') return { type: 'any', ...oneAtATime };
  return parallelToolCalls === false || toolChoice === 'auto' ? { type: 'auto', ...oneAtATime } : undefined;
}

/** Merges neighbours of one role: results of parallel tool calls must arrive together, before the user's next text. The API refuses empty texts. */
function wireMessages(
  messages: readonly ModelMessage[],
  markOf: (message: ModelMessage) => Block,
): { role: 'user' | 'assistant'; content: Block[] }[] {
  const out: { role: 'user' | 'assistant'; content: Block[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = blocksOf(message);
    const end = content.at(-1);
    if (end === undefined) continue;
    Object.assign(end, markOf(message));
    const last = out.at(-1);
    if (last?.role === role) last.content.push(...content);
    else out.push({ role, content });
  }
  return out;
}

function blocksOf(message: ModelMessage): Block[] {
  if (message.role === 'tool') {
    return [
      {
        type: 'tool_result',
        tool_use_id: toolCallId(message.toolCallId, 'word'),
        content: message.content === '' ? '(no output)' : message.content.toWellFormed(),
        ...(message.isError === true ? { is_error: true } : {}),
      },
    ];
  }
  if (message.role === 'user' && message.parts !== undefined) return message.parts.flatMap(partBlock);
  // Half of a surrogate pair is not valid text: the API would refuse the whole request.
  const blocks: Block[] = message.role === 'assistant' ? (message.thinking ?? []).filter(isSigned).map((block) => ({ ...block })) : [];
  if (message.content.trim() !== '') blocks.push({ type: 'text', text: message.content.toWellFormed() });
  if (message.role === 'assistant')
    for (const call of message.toolCalls ?? [])
      blocks.push({ type: 'tool_use', id: toolCallId(call.id, 'word'), name: call.name, input: inputOf(call.arguments.toWellFormed()) });
  return blocks;
}

/** The API refuses a block without its signature, which blocks from other servers lack. */
function isSigned(block: ThinkingBlock): boolean {
  return block.type === 'redacted_thinking' ? block.data !== '' : block.signature !== '';
}

function partBlock(part: ModelPart): Block[] {
  if (part.type === 'text') return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text.toWellFormed() }];
  const data = readDataUrl(part.url);
  const source = data === undefined ? { type: 'url', url: part.url } : { type: 'base64', media_type: data.mediaType, data: data.base64 };
  return [part.type === 'image' ? { type: 'image', source } : { type: 'document', source, title: part.name.toWellFormed() }];
}

/** The API accepts an object only; invalid arguments that the model once wrote stay readable. */
function inputOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { value };
  } catch {
    return { malformed: text };
  }
}
