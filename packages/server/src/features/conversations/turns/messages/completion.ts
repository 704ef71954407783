import { AppError } from '../../../../kernel/app-error.ts';
import type { ModelMessage, ModelPart, ToolCall } from '../../../../llm/model.ts';
import { isBase64, readDataUrl } from '../../../../llm/wire/data-url.ts';
import type { FenceLabel } from '../../../../runtime/fence.ts';
import type { CompletionMessage, CompletionRequest } from '../api.ts';
import { ResultMedia } from './result-media.ts';

/** Types of images that every vendor who takes images takes. */
export const imageTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

const refuse = (message: string) => new AppError('invalid_params', message, { param: 'messages' });

/** Looks at what no provider would take, so that the caller hears of it by name; fails with `invalid_params`. */
export function checkCompletion({ messages, history = [], clientTools = [], options }: CompletionRequest): void {
  checkResults(messages, history);
  for (const [index, message] of messages.entries()) if (message.role === 'user') for (const part of message.parts ?? []) checkPart(part, index);
  const choice = options?.toolChoice;
  const names = clientTools.map((tool) => tool.name);
  if (choice === 'required' && names.length === 0)
    throw new AppError('invalid_params', 'A required tool call needs tools to choose from', { param: 'toolChoice' });
  if (typeof choice === 'object' && !names.includes(choice.name))
    throw new AppError('invalid_params', `The chosen tool ${quote(choice.name)} is not among the tools of the request`, { param: 'toolChoice' });
}

/** Each result answers a call of the assistant message before it, and no call is left without one: providers refuse anything else. */
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
    if (waiting.size < (message.toolCalls?.length ?? 0)) throw refuse(`messages[${index}]: expected each tool call to have an id of its own`);
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

/** Whether some provider would take it. */
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

/** The messages as the model is sent them: what the caller says in another's name goes into fences, texts of the system to the system prompt. */
export function fenceCompletion(request: CompletionRequest, fence: (text: string, label: FenceLabel) => string): FencedCompletion {
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

/** Parts are sent only where an image or a file is among them: not every server takes a list of texts. */
export function userMessage(content: string, parts: readonly ModelPart[] | undefined): ModelMessage {
  return parts?.some((part) => part.type !== 'text') === true ? { role: 'user', content, parts } : { role: 'user', content };
}
