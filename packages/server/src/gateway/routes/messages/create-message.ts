import { toFragment } from '../../../kernel/json-fragment.ts';
import { randomUUID } from 'node:crypto';
import { type MessageObject, MessagesRequest } from '@gatehouse/contract';
import type { CompletionRequest, TurnOutcome, TurnsApi } from '../../../features/conversations/turns/api.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Log } from '../../../kernel/log.ts';
import type { TurnSink } from '../../../runtime/turn.ts';
import { readJsonBody } from '../../body.ts';
import { failStream } from '../../fail-stream.ts';
import type { HttpCall } from '../../http-call.ts';
import { parseInput } from '../../parse-input.ts';
import { sendJson } from '../../reply.ts';
import { SseWriter } from '../../sse-writer.ts';
import { failureOf, isEarlyEnd } from '../v1-failure.ts';
import { closedMessage, openMessage } from './message-object.ts';
import { toMessageError } from './message-error.ts';
import { MessageEvents } from './message-events.ts';
import { toCompletion } from './message-request.ts';

export interface MessagesDeps {
  readonly turns: Pick<TurnsApi, 'complete'>;
  readonly bodyLimit: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly keepAliveMs?: number | undefined;
}

/** `POST /v1/messages`: a completion in the format of Anthropic's Messages API (decisions §12). */
export function createMessagesRoute(deps: MessagesDeps): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const request = parseInput(MessagesRequest(), await readJsonBody(call, deps.bodyLimit()));
    const open = openMessage(`msg_${randomUUID()}`, request.model);
    const completion = { ...toCompletion(request), completionId: open.id };
    await (request.stream === true ? stream(deps, call, open, completion) : whole(deps, call, open, completion));
  };
}

function runTurn({ turns }: MessagesDeps, call: HttpCall, completion: CompletionRequest, sink?: TurnSink): Promise<TurnOutcome> {
  return turns.complete(completion, call.context(), sink).catch((error: unknown) => {
    throw toMessageError(error);
  });
}

async function whole(deps: MessagesDeps, call: HttpCall, open: MessageObject, completion: CompletionRequest): Promise<void> {
  const outcome = await runTurn(deps, call, completion);
  call.setHeader('x-gatehouse-finish-reason', outcome.finishReason);
  const failure = failureOf(outcome, 'messages');
  if (failure !== undefined && outcome.text === '') throw failure;
  sendJson(call, 200, closedMessage(open, outcome));
}

/** Sends the status with the first text or the first ping; from then on a failure is an event. */
async function stream(deps: MessagesDeps, call: HttpCall, open: MessageObject, completion: CompletionRequest): Promise<void> {
  const events = new MessageEvents(open);
  const { clock, log, keepAliveMs } = deps;
  const writer = new SseWriter(call, { clock, keepAliveText: () => events.ping(), ...(keepAliveMs !== undefined && { keepAliveMs }) });
  let produced = false;
  let hasText = false;
  const push = (text: string): void => {
    produced = true;
    writer.push(text);
  };
  const sink: TurnSink = {
    thinking: {
      fragment: (fragment) => push(events.thinking(fragment)),
      block: (block) => push(events.endThinking(block)),
    },
    text(fragment) {
      hasText = true;
      push(events.text(fragment));
    },
    flush: () => writer.flush(),
    drained: () => writer.drained(),
  };
  let outcome: TurnOutcome;
  try {
    outcome = await runTurn(deps, call, completion, sink);
  } catch (error) {
    failStream(call, writer, error, { produced, log });
    return;
  }
  const failure = failureOf(outcome, 'messages');
  if (failure !== undefined && !(hasText && isEarlyEnd(outcome))) {
    failStream(call, writer, failure, { produced, log });
    return;
  }
  // Text that no model streamed, a command's answer for example.
  if (!hasText && outcome.text !== '') sink.text(toFragment(outcome.text));
  writer.push(events.end(outcome));
  writer.end();
}
