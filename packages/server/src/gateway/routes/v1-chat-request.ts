import { ChatCompletionRequest, ExtendedChatCompletionRequest, imageNotSupported } from '@gatehouse/contract';
import type { CompletionRequest } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { parseExtendedChat } from './v1-chat-extended.ts';
import { parseStrictly } from './v1-strict.ts';

/** A chat completion as input of the turn, and the requested form of its answer. */
export interface ChatRequest {
  readonly completion: Omit<CompletionRequest, 'completionId'>;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** Parses the body by the strict set of http-gateway.md §2.1, or by the one of `gateway.compat.fields: extended` (decisions §3). */
export function parseChat(body: unknown, fields: 'strict' | 'extended'): ChatRequest {
  const request = fields === 'strict' ? parseStrict(body) : parseExtendedChat(body);
  const { messages } = request.completion;
  if (!messages.some((message) => message.role === 'user' && (message.content.trim() !== '' || message.parts !== undefined)))
    throw new AppError('invalid_params', 'messages: at least one user message must not be empty', { param: 'messages' });
  return request;
}

function parseStrict(body: unknown): ChatRequest {
  if (hasImage(body)) throw new AppError('invalid_params', `${imageNotSupported}; send text blocks only`, { param: 'messages' });
  const request = parseStrictly(ChatCompletionRequest(), ExtendedChatCompletionRequest(), body);
  return {
    completion: {
      model: request.model,
      messages: request.messages.map(({ role, content }) => ({
        role,
        content: typeof content === 'string' ? content : content.map((block) => block.text).join('\n'),
      })),
      temperature: request.temperature,
      maxTokens: request.max_tokens,
    },
    stream: request.stream,
    includeUsage: request.stream_options?.include_usage !== false,
  };
}

/** Detects an image, which has its own error, whatever else is wrong with the body; it is never dropped (§2.1, rule 6). */
function hasImage(body: unknown): boolean {
  const messages = field(body, 'messages');
  return (
    Array.isArray(messages) &&
    messages.some((message) => {
      const content = field(message, 'content');
      return Array.isArray(content) && content.some((block) => field(block, 'type') === 'image_url');
    })
  );
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
