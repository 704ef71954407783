import { randomUUID } from 'node:crypto';
import { ChatCompletionRequest, type ChatCompletion, imageNotSupported } from '@gatehouse/contract';
import type { TurnOutcome, TurnsApi } from '../../features/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { TurnSink } from '../../runtime/turn.ts';
import { readJsonBody } from '../body.ts';
import { v1ErrorBody } from '../error-body.ts';
import type { HttpCall } from '../http-call.ts';
import { sendError, sendJson } from '../reply.ts';
import { SseWriter } from '../sse-writer.ts';
import { chunksOf, mapFinishReason } from './chat-chunks.ts';
import { parseV1 } from './v1-body.ts';

export interface ChatDeps {
  readonly turns: TurnsApi;
  readonly bodyLimit: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly keepAliveMs?: number | undefined;
}

/** `POST /v1/chat/completions` (http-gateway.md §2.1–2.5, §3, §4.1). */
export function createChatRoute(deps: ChatDeps): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const body = await readJsonBody(call, deps.bodyLimit);
    const request = parseRequest(body);
    const completion = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(deps.clock.now() / 1000), request };
    await (request.stream ? stream(deps, call, completion) : whole(deps, call, completion));
  };
}

interface Completion {
  readonly id: string;
  readonly created: number;
  readonly request: ChatCompletionRequest;
}

function parseRequest(body: unknown): ChatCompletionRequest {
  if (hasImage(body)) throw new AppError('invalid_params', `${imageNotSupported}; send text blocks only`, { param: 'messages' });
  const request = parseV1(ChatCompletionRequest, body);
  if (!request.messages.some((message) => message.role === 'user' && textOf(message.content).trim() !== '')) {
    throw new AppError('invalid_params', 'messages: at least one user message must not be empty', { param: 'messages' });
  }
  return request;
}

/** An image is refused by its own words, whatever else is wrong with the body; it is never dropped (§2.1, rule 6). */
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

function textOf(content: ChatCompletionRequest['messages'][number]['content']): string {
  return typeof content === 'string' ? content : content.map((block) => block.text).join('\n');
}

function runTurn(deps: ChatDeps, call: HttpCall, { id, request }: Completion, sink?: TurnSink): Promise<TurnOutcome> {
  return deps.turns.complete(
    {
      completionId: id,
      model: request.model,
      messages: request.messages.map(({ role, content }) => ({ role, content: textOf(content) })),
      temperature: request.temperature,
      maxTokens: request.max_tokens,
    },
    call.context(),
    sink,
  );
}

async function whole(deps: ChatDeps, call: HttpCall, completion: Completion): Promise<void> {
  const outcome = await runTurn(deps, call, completion);
  call.setHeader('x-gatehouse-finish-reason', outcome.finishReason);
  const failure = failureOf(outcome);
  if (failure !== undefined && outcome.text === '') throw failure;
  const answer: ChatCompletion = {
    id: completion.id,
    object: 'chat.completion',
    created: completion.created,
    model: completion.request.model,
    choices: [{ index: 0, message: { role: 'assistant', content: outcome.text }, finish_reason: mapFinishReason(outcome.finishReason) }],
    usage: { prompt_tokens: outcome.tokensUsed.input, completion_tokens: outcome.tokensUsed.output, total_tokens: outcome.tokensUsed.total },
  };
  sendJson(call, 200, answer);
}

async function stream(deps: ChatDeps, call: HttpCall, completion: Completion): Promise<void> {
  const { request } = completion;
  const writer = new SseWriter(call, { clock: deps.clock, ...(deps.keepAliveMs !== undefined && { keepAliveMs: deps.keepAliveMs }) });
  const chunks = chunksOf(completion.id, completion.created, request.model);
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

  function fail(failure: unknown): void {
    if (!writer.started && !produced) {
      writer.cancel();
      sendError(call, failure, deps.log);
      return;
    }
    const error = failure instanceof AppError ? failure : new AppError('internal', 'Internal error', { cause: failure });
    if (error.details.cause !== undefined)
      deps.log.error({ requestId: call.requestId, traceId: call.traceId, err: error.details.cause }, 'A streamed completion failed');
    writer.push(`data: ${JSON.stringify(v1ErrorBody(error))}\n\ndata: [DONE]\n\n`);
    writer.end();
  }

  let outcome: TurnOutcome;
  try {
    outcome = await runTurn(deps, call, completion, sink);
  } catch (error) {
    fail(error);
    return;
  }
  const failure = failureOf(outcome);
  // A budget or a context that ran out after some text is an early end like any other; a fault after some text must be seen as one.
  const early = outcome.finishReason === 'budget_exceeded' || outcome.finishReason === 'context_exhausted';
  if (failure !== undefined && !(produced && early)) {
    fail(failure);
    return;
  }
  // Answers that no model streamed (a command's, for example).
  if (!produced && outcome.text !== '') sink.text(JSON.stringify(outcome.text).slice(1, -1));
  if (!produced) writer.push(chunks.role);
  writer.push(chunks.finish(outcome.finishReason, call.incoming.headers['x-gatehouse-extensions'] === '1'));
  if (request.stream_options?.include_usage !== false) writer.push(chunks.usage(outcome.tokensUsed));
  writer.push('data: [DONE]\n\n');
  writer.end();
}

/** What a turn that did not do its work looks like to a client that has seen nothing of it (decisions §3, failed turns). */
function failureOf(outcome: TurnOutcome): AppError | undefined {
  const { finishReason, failure } = outcome;
  const retry = failure?.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs };
  if (finishReason === 'budget_exceeded') return new AppError('rate_limited', failure?.message ?? 'The budget is used up', retry);
  if (finishReason === 'context_exhausted')
    return new AppError('invalid_params', failure?.message ?? 'The conversation does not fit into the context of the model', { param: 'messages' });
  if (finishReason === 'aborted') return new AppError('unavailable', failure?.message ?? 'The turn was aborted', retry);
  if (finishReason !== 'error' && finishReason !== 'circuit_open' && finishReason !== 'provider_degraded' && finishReason !== 'timeout')
    return undefined;
  if (failure?.kind === 'rate_limit') return new AppError('rate_limited', failure.message, retry);
  return new AppError('internal', failure?.message ?? 'The turn failed', retry);
}
