import { randomUUID } from 'node:crypto';
import { type ChatCompletion, ChatCompletionRequest, ExtendedChatCompletionRequest, imageNotSupported } from '@gatehouse/contract';
import type { TurnOutcome, TurnsApi, CompletionRequest } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import { toFragment } from '../../kernel/json-fragment.ts';
import type { Log } from '../../kernel/log.ts';
import type { TurnSink } from '../../runtime/turn.ts';
import { readJsonBody } from '../body.ts';
import { failStream } from '../fail-stream.ts';
import type { HttpCall } from '../http-call.ts';
import { sendJson } from '../reply.ts';
import { SseWriter } from '../sse-writer.ts';
import { chunksOf, mapFinishReason, wireCall } from './chat-chunks.ts';
import { parseExtendedChat } from './v1-chat-extended.ts';
import { failureOf, isEarlyEnd } from './v1-failure.ts';
import { parseStrictly } from './v1-strict.ts';
import { chatNames, toWireError } from './v1-wire-error.ts';

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

export interface ChatDeps {
  readonly turns: TurnsApi;
  /** `gateway.compat.fields`; a token’s own setting wins. */
  readonly fields: () => 'strict' | 'extended';
  readonly bodyLimit: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly keepAliveMs?: number | undefined;
}

/** `POST /v1/chat/completions` (http-gateway.md §2.1–2.5, §3, §4.1). */
export function createChatRoute(deps: ChatDeps): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const body = await readJsonBody(call, deps.bodyLimit());
    const request = parseChat(body, call.identity?.compat?.fields ?? deps.fields());
    const completion = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(deps.clock.now() / 1000), request };
    await (request.stream ? stream(deps, call, completion) : whole(deps, call, completion));
  };
}

interface Completion {
  readonly id: string;
  readonly created: number;
  readonly request: ChatRequest;
}

function runTurn(deps: ChatDeps, call: HttpCall, { id, request }: Completion, sink?: TurnSink): Promise<TurnOutcome> {
  return deps.turns.complete({ ...request.completion, completionId: id }, call.context(), sink).catch((error: unknown) => {
    throw toWireError(error, chatNames);
  });
}

async function whole(deps: ChatDeps, call: HttpCall, completion: Completion): Promise<void> {
  const outcome = await runTurn(deps, call, completion);
  call.setHeader('x-gatehouse-finish-reason', outcome.finishReason);
  const failure = failureOf(outcome, 'messages');
  if (failure !== undefined && outcome.text === '') throw failure;
  const answer: ChatCompletion = {
    id: completion.id,
    object: 'chat.completion',
    created: completion.created,
    model: completion.request.completion.model,
    choices: [{ index: 0, message: messageOf(outcome), finish_reason: mapFinishReason(outcome) }],
    usage: { prompt_tokens: outcome.tokensUsed.input, completion_tokens: outcome.tokensUsed.output, total_tokens: outcome.tokensUsed.total },
  };
  sendJson(call, 200, answer);
}

function messageOf({ text, clientCalls }: TurnOutcome): ChatCompletion['choices'][number]['message'] {
  if (clientCalls === undefined) return { role: 'assistant', content: text };
  return { role: 'assistant', content: text === '' ? null : text, tool_calls: clientCalls.map(wireCall) };
}

async function stream(deps: ChatDeps, call: HttpCall, completion: Completion): Promise<void> {
  const { request } = completion;
  const writer = new SseWriter(call, { clock: deps.clock, ...(deps.keepAliveMs !== undefined && { keepAliveMs: deps.keepAliveMs }) });
  const chunks = chunksOf(completion.id, completion.created, request.completion.model);
  let produced = false;
  const sink: TurnSink = {
    text(fragment) {
      if (!produced) writer.push(chunks.role);
      produced = true;
      writer.push(chunks.beforeText + fragment + chunks.afterText);
    },
    flush: () => writer.flush(),
    drained: () => writer.drained(),
  };

  const fail = (failure: unknown): void => failStream(call, writer, failure, { produced, log: deps.log });

  let outcome: TurnOutcome;
  try {
    outcome = await runTurn(deps, call, completion, sink);
  } catch (error) {
    fail(error);
    return;
  }
  const failure = failureOf(outcome, 'messages');
  if (failure !== undefined && !(produced && isEarlyEnd(outcome))) {
    fail(failure);
    return;
  }
  // Text that no model streamed (a command's answer, for example).
  if (!produced && outcome.text !== '') sink.text(toFragment(outcome.text));
  if (!produced) writer.push(chunks.role);
  for (const [index, toolCall] of (outcome.clientCalls ?? []).entries()) writer.push(chunks.call(index, toolCall));
  writer.push(chunks.finish(outcome, call.incoming.headers['x-gatehouse-extensions'] === '1'));
  if (request.includeUsage) writer.push(chunks.usage(outcome.tokensUsed));
  writer.push('data: [DONE]\n\n');
  writer.end();
}
