import { AppError } from '../../../../kernel/app-error.ts';
import type { ModelMessage, ModelPart, ToolCall } from '../../../../llm/model.ts';
import { isBase64, readDataUrl } from '../../../../llm/wire/data-url.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { CompletionMessage, CompletionRequest } from '../api.ts';
import { ResultMedia } from './media-support.ts';

/** Image types supported by every vendor that supports images. */
export const imageTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

const refuse = (message: string) => new AppError('invalid_params', message, { param: 'messages' });

/** Checks a completion for input that no provider accepts; throws `invalid_params` with the field. */
export function checkCompletion({ messages, history = [], clientTools = [], options }: CompletionRequest): void {
  checkResults(messages, history);
  for (const [index, message] of messages.entries()) if (message.role === 'user') for (const part of message.parts ?? []) checkPart(part, index);
  const choice = options?.toolChoice;
  const names = clientTools.map((tool) => tool.name);
  if (choice === 'required' && names.length === 0)
    throw new AppError('invalid_params', 'A required tool call needs tools to choose from', { param: 'toolChoice' });
  if (typeof choice === 'object' && !names.includes(choice.name))
    throw new AppError('invalid_params', `The tool ${quote(choice.name)} of toolChoice is not in the tools of the request`, { param: 'toolChoice' });
}

/** Checks that each result answers a call of the previous assistant message and no call lacks one; providers reject anything else. */
function checkResults(messages: readonly CompletionMessage[], history: readonly ModelMessage[]): void {
  let waiting = new Set<string>();
  for (const message of history) {
    if (message.role === 'assistant') waiting = idsOf(message.toolCalls);
    else if (message.role === 'tool') waiting.delete(message.toolCallId);
  }
  for (const [index, message] of messages.entries()) {
    if (message.role === 'system' || message.role === 'developer') continue;
    if (message.role === 'tool') {
      if (!waiting.delete(message.toolCallId))
        throw refuse(
          `messages[${index}]: expected the result of a call of the assistant message before it, got one for ${quote(message.toolCallId)}`,
        );
      continue;
    }
    if (waiting.size > 0) throw refuse(`messages[${index}]: expected the result of the call ${quote(first(waiting))} before it`);
    if (message.role !== 'assistant') continue;
    waiting = idsOf(message.toolCalls);
    if (waiting.size < (message.toolCalls?.length ?? 0)) throw refuse(`messages[${index}]: expected each tool call to have its own id`);
  }
  if (waiting.size > 0) throw refuse(`messages: expected the result of the call ${quote(first(waiting))} at the end`);
}

function idsOf(calls: readonly ToolCall[] | undefined): Set<string> {
  return new Set(calls?.map((call) => call.id));
}

const first = (ids: ReadonlySet<string>) => ids.values().next().value ?? '';
const quote = (text: string) => JSON.stringify(text.slice(0, 100).toWellFormed());

function checkPart(part: ModelPart, index: number): void {
  if (isUsable(part)) return;
  if (part.type === 'file') throw refuse(`messages[${index}]: expected a file as a base64 data: URL of type application/pdf`);
  throw refuse(`messages[${index}]: expected an image as an https: URL or a base64 data: URL of type ${[...imageTypes].join(', ')}`);
}

/** Returns whether any provider accepts the part. */
function isUsable(part: ModelPart): boolean {
  if (part.type === 'text') return true;
  const data = readDataUrl(part.url);
  const type = data !== undefined && isBase64(data.base64) ? data.mediaType : undefined;
  if (part.type === 'file') return type === 'application/pdf';
  return (part.url.startsWith('https://') && URL.canParse(part.url)) || (type !== undefined && imageTypes.has(type));
}

export interface FencedCompletion {
  readonly system: readonly string[];
  readonly messages: readonly ModelMessage[];
  /** The last text of the user. */
  readonly userText: string;
}

/** Returns the messages for the model: texts that the caller attributes to others are fenced, system texts go to the system prompt. */
export function fenceCompletion(request: CompletionRequest, fence: FenceText): FencedCompletion {
  const system: string[] = [];
  const messages: ModelMessage[] = [];
  const toolNames = new Map<string, string>();
  const nameCalls = (calls: readonly ToolCall[] = []) => {
    for (const call of calls) toolNames.set(call.id, call.name);
  };
  for (const message of request.history ?? []) if (message.role === 'assistant') nameCalls(message.toolCalls);
  let userText = '';
  const media = new ResultMedia(isUsable);
  const put = (message: ModelMessage, { cacheMark }: CompletionMessage): void => {
    if (message.role !== 'tool') messages.push(...media.release());
    messages.push(cacheMark === true ? { ...message, cacheMark } : message);
  };
  for (const message of request.messages) {
    const { role, content } = message;
    if (role === 'user') {
      userText = content;
      put(userMessage(content, message.parts), message);
    } else if (role === 'assistant') {
      const { toolCalls = [], reasoning, thinking = [] } = message;
      nameCalls(toolCalls);
      const fenced = content === '' && toolCalls.length > 0 ? '' : fence(content, { source: 'api', role });
      const thought = { ...(reasoning !== undefined && { reasoning }), ...(thinking.length > 0 && { thinking }) };
      put({ role, content: fenced, ...(toolCalls.length > 0 && { toolCalls }), ...thought }, message);
    } else if (role === 'tool') {
      const { toolCallId, parts, isError } = message;
      const text = parts === undefined ? content : media.take(parts);
      const fenced = text === '' ? '' : fence(text, { source: 'api', role });
      put({ role, content: fenced, toolCallId, toolName: toolNames.get(toolCallId) ?? '', ...(isError === true && { isError }) }, message);
    } else system.push(fence(content, { source: 'api', role: 'system' }));
  }
  messages.push(...media.release());
  return { system, messages, userText };
}

/** Returns a user message. Parts are sent only when there is an image or a file, because not every server accepts a list of texts. */
export function userMessage(content: string, parts: readonly ModelPart[] | undefined): ModelMessage {
  return parts?.some((part) => part.type !== 'text') === true ? { role: 'user', content, parts } : { role: 'user', content };
}
