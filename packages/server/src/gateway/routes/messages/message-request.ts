import type { CountTokensRequest, MessageParam, MessagesRequest } from '@gatehouse/contract';
import type * as z from 'zod';
import type { CompletionMessage, CompletionRequest } from '../../../features/conversations/turns/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { ModelOptions, ModelPart, ThinkingBlock, ToolCall } from '../../../llm/model.ts';
import { filePart, imagePart, resultFile, toolMessage, userMessage } from '../v1-parts.ts';
import { jsonSchemaFormat, toolSpecs } from '../v1-tools.ts';

type Asked = Omit<CompletionRequest, 'completionId'>;
/** The fields that decide which text the model gets; both routes have them. */
type Input = z.output<ReturnType<typeof CountTokensRequest>>;
/** A message of the user or of the model. */
type SpokenParam = Exclude<MessageParam, { role: 'system' }>;
type Block = Exclude<Extract<MessageParam, { role: 'user' }>['content'], string>[number];
/** The conversation itself; system texts are passed separately. */
type Spoken = Exclude<CompletionMessage, { role: 'system' | 'developer' }>;
type ResultBlock = Exclude<NonNullable<Extract<Block, { type: 'tool_result' }>['content']>, string>[number];
type CacheControl = Input['cache_control'];
interface SystemText {
  readonly text: string;
  readonly cache_control?: CacheControl;
}

const wrong = (message: string, param: string) => new AppError('invalid_params', `${param}: ${message}`, { param });

/** Translates a message request for the turn. */
export function toCompletion(request: MessagesRequest): Asked {
  const { thinking, temperature, top_k: topK, stop_sequences: stop, metadata } = request;
  if (thinking?.type === 'enabled' && thinking.budget_tokens >= request.max_tokens)
    throw wrong('expected less than max_tokens', 'thinking.budget_tokens');
  if (thinking != null && thinking.type !== 'disabled' && temperature != null && temperature !== 1)
    throw wrong('expected 1, or none, when thinking is enabled', 'temperature');
  const input = toInput(request);
  const options: ModelOptions = {
    ...input.options,
    ...(request.top_p != null && { topP: request.top_p }),
    ...(topK != null && { topK }),
    ...(stop != null && stop.length > 0 && { stop }),
    ...(metadata?.user_id != null && { endUser: metadata.user_id }),
  };
  return {
    ...input,
    temperature: temperature ?? undefined,
    maxTokens: request.max_tokens,
    maxTokensIsBound: true,
    ...(Object.keys(options).length > 0 && { options }),
  };
}

/** Returns the part that is counted. */
export function toInput(request: Input): Asked {
  const system = systemTexts(request);
  const messages = request.messages.flatMap((message, index) => (message.role === 'system' ? [] : toMessages(message, `messages.${index}`)));
  if (request.messages.findLast(({ role }) => role !== 'system')?.role === 'assistant')
    throw wrong('the last message must be from the user: a partial answer is not continued', `messages.${request.messages.length - 1}.role`);
  if (!messages.some((message) => message.role === 'tool' || (message.role === 'user' && saysSomething(message))))
    throw wrong('at least one user message must not be empty', 'messages');
  const last = messages.at(-1);
  if (last !== undefined) messages[messages.length - 1] = { ...last, ...marked(request.cache_control) };
  const tools = toolSpecs((request.tools ?? []).map((tool) => ({ ...tool, parameters: tool.input_schema })));
  const isMarked = [...system, ...(request.tools ?? [])].some((block) => block.cache_control != null);
  const options = { ...toOptions(request), ...(isMarked && { systemCacheMark: true as const }) };
  return {
    channelId: 'messages',
    model: request.model,
    messages: [...system.map(({ text }) => ({ role: 'system' as const, content: text })), ...messages],
    ...(tools.length > 0 && { clientTools: tools }),
    ...(Object.keys(options).length > 0 && { options }),
  };
}

/** Collects system texts. Claude Code also sends instructions among the messages; they have the system prompt's authority, not the user's. */
function systemTexts({ system, messages }: Input): SystemText[] {
  const contents = [system, ...messages.flatMap((message) => (message.role === 'system' ? [message.content] : []))];
  return contents
    .flatMap((content): readonly SystemText[] => (typeof content === 'string' ? [{ text: content }] : (content ?? [])))
    .filter(({ text }) => text !== '');
}

function saysSomething({ content, parts }: Extract<CompletionMessage, { role: 'user' }>): boolean {
  return content.trim() !== '' || parts !== undefined;
}

function toOptions(request: Input): ModelOptions {
  const { tool_choice: choice, thinking, output_config: output } = request;
  const format = output?.format ?? request.output_format;
  return {
    ...(choice != null && { toolChoice: choice.type === 'tool' ? { name: choice.name } : choice.type === 'any' ? 'required' : choice.type }),
    ...(choice != null && choice.type !== 'none' && choice.disable_parallel_tool_use === true && { parallelToolCalls: false }),
    ...(thinking != null && {
      thinking: thinking.type === 'enabled' ? { type: thinking.type, budgetTokens: thinking.budget_tokens } : { type: thinking.type },
    }),
    ...(output?.effort != null && { effort: output.effort }),
    ...(format != null && { responseFormat: jsonSchemaFormat({ name: 'output', schema: format.schema, strict: true }) }),
  };
}

/** The agent decides how long the cache is kept. */
const marked = (...controls: readonly CacheControl[]) => controls.some((control) => control != null) && { cacheMark: true as const };

/** Puts tool results first, each as a separate message, then the user's own content. */
function toMessages(message: SpokenParam, param: string): Spoken[] {
  if (typeof message.content === 'string') return [{ role: message.role, content: message.content }];
  if (message.role === 'assistant') return [answerMessage(message.content)];
  const results: Spoken[] = [];
  const parts: ModelPart[] = [];
  const marks: CacheControl[] = [];
  for (const [index, block] of message.content.entries()) {
    const place = `${param}.content.${index}`;
    if (block.type === 'tool_result') results.push(resultMessage(block));
    else {
      parts.push(...toParts(block, place));
      marks.push(block.cache_control);
    }
  }
  return parts.length === 0 && results.length > 0 ? results : [...results, { ...userMessage(parts), ...marked(...marks) }];
}

function answerMessage(blocks: Exclude<Extract<MessageParam, { role: 'assistant' }>['content'], string>): Spoken {
  const texts: string[] = [];
  const toolCalls: ToolCall[] = [];
  const thinking: ThinkingBlock[] = [];
  const marks: CacheControl[] = [];
  for (const block of blocks) {
    if (block.type === 'thinking') thinking.push({ type: block.type, thinking: block.thinking, signature: block.signature ?? '' });
    else if (block.type === 'redacted_thinking') thinking.push({ type: block.type, data: block.data });
    else {
      if (block.type === 'text') texts.push(block.text);
      else toolCalls.push({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) });
      marks.push(block.cache_control);
    }
  }
  return {
    role: 'assistant',
    content: texts.join('\n'),
    ...(toolCalls.length > 0 && { toolCalls }),
    ...(thinking.length > 0 && { thinking }),
    ...marked(...marks),
  };
}

function resultMessage(block: Extract<Block, { type: 'tool_result' }>): Spoken {
  const { content } = block;
  const parts: readonly ModelPart[] =
    content == null || typeof content === 'string' ? [{ type: 'text', text: content ?? '' }] : content.flatMap((inner) => toParts(inner));
  return {
    ...toolMessage(block.tool_use_id, parts),
    ...(block.is_error === true && { isError: true }),
    ...marked(block.cache_control),
  };
}

/** Converts a block of a tool result. Without `param`, content that no model accepts becomes a note: a conversation that holds it must continue. */
function toParts(block: ResultBlock, param?: string): ModelPart[] {
  if (block.type === 'text') return [{ type: 'text', text: block.text }];
  if (block.type === 'image') return [imagePart(block.source.type === 'url' ? block.source.url : dataUrl(block.source), undefined)];
  const { source } = block;
  const heading = [block.title, block.context].filter((text) => text != null && text !== '').join('\n');
  const titled = (parts: ModelPart[]): ModelPart[] => (heading === '' ? parts : [{ type: 'text', text: heading }, ...parts]);
  if (source.type === 'text') return titled([{ type: 'text', text: source.data }]);
  if (source.type === 'base64') {
    const name = block.title?.slice(0, 255);
    return titled([param === undefined ? resultFile(dataUrl(source), name) : filePart(dataUrl(source), name, `${param}.source.data`)]);
  }
  const { content } = source;
  return titled(typeof content === 'string' ? [{ type: 'text', text: content }] : content.flatMap((inner) => toParts(inner, param)));
}

function dataUrl({ media_type: type, data }: { readonly media_type: string; readonly data: string }): string {
  return `data:${type};base64,${data}`;
}
