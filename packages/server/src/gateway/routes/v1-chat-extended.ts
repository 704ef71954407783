import { effortOf, ExtendedChatCompletionRequest, type ExtendedChatMessage } from '@gatehouse/contract';
import type { CompletionMessage } from '../../features/conversations/turns/api.ts';
import type { ModelOptions, ModelPart } from '../../llm/model.ts';
import { parseInput } from '../parse-input.ts';
import type { ChatRequest } from './v1-chat.ts';
import { filePart, imagePart, resultFile, toolMessage, userMessage } from './v1-parts.ts';
import { jsonSchemaFormat, toolSpecs } from './v1-tools.ts';

/** Parses a body with all fields that clients send, not only the strict set; each field has its effect or is refused. */
export function parseExtendedChat(body: unknown): ChatRequest {
  const request = parseInput(ExtendedChatCompletionRequest(), body);
  const messages = request.messages.map((message, index) => toMessage(message, `messages.${index}`));
  const tools = toolSpecs((request.tools ?? []).map((tool) => tool.function));
  const options = optionsOf(request);
  return {
    completion: {
      model: request.model,
      messages,
      temperature: request.temperature ?? undefined,
      maxTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
      ...(tools.length > 0 && { clientTools: tools }),
      ...(Object.keys(options).length > 0 && { options }),
    },
    stream: request.stream === true,
    includeUsage: request.stream_options?.include_usage !== false,
  };
}

function toMessage(message: ExtendedChatMessage, param: string): CompletionMessage {
  const plain = unmarked(message, param);
  return isMarked(message) ? { ...plain, cacheMark: true } : plain;
}

function isMarked({ cache_control: mark, content }: ExtendedChatMessage): boolean {
  return mark != null || (Array.isArray(content) && content.some((block) => 'cache_control' in block && block.cache_control != null));
}

function unmarked(message: ExtendedChatMessage, param: string): CompletionMessage {
  if (message.role === 'tool') return toolMessage(message.tool_call_id, resultParts(message.content ?? ''));
  if (message.role === 'user') {
    const { content } = message;
    if (typeof content === 'string') return { role: 'user', content: spoken(message.name, content) };
    const parts = content.map((block, index): ModelPart => {
      if (block.type === 'text') return { type: 'text', text: block.text };
      if (block.type === 'image_url') return imagePart(block.image_url.url, block.image_url.detail);
      return filePart(block.file.file_data, block.file.filename, `${param}.content.${index}.file.file_data`);
    });
    return userMessage(message.name == null ? parts : [{ type: 'text', text: `${message.name}:` }, ...parts]);
  }
  if (message.role !== 'assistant') return { role: message.role, content: spoken(message.name, textOf(message.content)) };
  const content = spoken(message.name, textOf(message.content ?? message.refusal ?? ''));
  const thought = [message.reasoning_content, message.reasoning].find((text) => typeof text === 'string' && text !== '');
  const reasoning = typeof thought === 'string' ? { reasoning: thought } : {};
  if (message.tool_calls == null || message.tool_calls.length === 0) return { role: 'assistant', content, ...reasoning };
  return {
    role: 'assistant',
    content,
    ...reasoning,
    toolCalls: message.tool_calls.map((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments })),
  };
}

function resultParts(content: NonNullable<Extract<ExtendedChatMessage, { role: 'tool' }>['content']>): ModelPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((block) => {
    if (block.type === 'text') return { type: 'text', text: block.text };
    if (block.type === 'image_url') return imagePart(block.image_url.url, block.image_url.detail);
    return resultFile(block.file.file_data, block.file.filename);
  });
}

function textOf(content: string | readonly ({ readonly text: string } | { readonly refusal: string })[]): string {
  return typeof content === 'string' ? content : content.map((block) => ('text' in block ? block.text : block.refusal)).join('\n');
}

/** Prefixes the speaker's name: few providers have a field for several speakers of one role, but every model reads text. */
function spoken(name: string | null | undefined, text: string): string {
  return name == null || text === '' ? text : `${name}: ${text}`;
}

function optionsOf(request: ExtendedChatCompletionRequest): ModelOptions {
  const { response_format: format, tool_choice: choice, stop } = request;
  const endUser = request.safety_identifier ?? request.user;
  return {
    ...(request.top_p != null && { topP: request.top_p }),
    ...(stop != null && { stop: typeof stop === 'string' ? [stop] : stop }),
    ...(request.seed != null && { seed: request.seed }),
    ...(request.presence_penalty != null && { presencePenalty: request.presence_penalty }),
    ...(request.frequency_penalty != null && { frequencyPenalty: request.frequency_penalty }),
    ...(format?.type === 'json_object' && { responseFormat: format }),
    ...(format?.type === 'json_schema' && { responseFormat: jsonSchemaFormat(format.json_schema) }),
    ...(choice != null && { toolChoice: typeof choice === 'string' ? choice : { name: choice.function.name } }),
    ...(request.parallel_tool_calls != null && { parallelToolCalls: request.parallel_tool_calls }),
    ...(request.reasoning_effort != null && { reasoningEffort: effortOf(request.reasoning_effort) }),
    ...(endUser != null && { endUser }),
  };
}
