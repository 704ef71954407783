import { type JsonFragment, toFragment } from '../../kernel/json-fragment.ts';
import type { ApiChatGap } from '@gatehouse/contract';
import type { KeptOutcome } from '../../features/conversations/receipts/api.ts';
import type { TurnRequest } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { type CallContext, isAdmin } from '../../kernel/call-context.ts';
import type { TurnSink } from '../../runtime/turn.ts';
import { failStream } from '../fail-stream.ts';
import type { HttpCall } from '../http-call.ts';
import { refuseQueryToken } from '../query.ts';
import { SseWriter } from '../sse-writer.ts';
import type { ApiChatDeps } from './api-chat.ts';
import { idempotencyKeyOf, lastEventIdOf, readChatRequest } from './api-chat-request.ts';
import { endedEarly, failureOf, toChatResult } from './api-chat-result.ts';

/** `POST /api/chat/stream` (http-gateway.md §2.9, §4.6; decisions §4). */
export function createApiChatStreamRoute(deps: ApiChatDeps): (call: HttpCall) => Promise<void> {
  return async (call) => {
    refuseQueryToken(call);
    const key = idempotencyKeyOf(call);
    const after = lastEventIdOf(call);
    if (key === undefined && after !== undefined)
      throw new AppError('invalid_params', 'Last-Event-ID: only a turn under an Idempotency-Key can be continued', { param: 'Last-Event-ID' });
    const request = await readChatRequest(call, deps.bodyLimit());
    const context = call.context();
    const stream = new ChatStream(call, deps, after ?? 0);
    try {
      stream.finish(
        await (key === undefined ? deps.turns.execute(request, context, stream.sink) : stream.follow(key, request, context)),
        isAdmin(context),
      );
    } catch (error) {
      stream.fail(error);
    }
  };
}

/** One reader's stream. The status is decided by what comes first: text, or a failure. */
class ChatStream {
  readonly #call: HttpCall;
  readonly #deps: ApiChatDeps;
  readonly #after: number;
  readonly #writer: SseWriter;
  #keyed = false;
  #begun = false;

  constructor(call: HttpCall, deps: ApiChatDeps, after: number) {
    this.#call = call;
    this.#deps = deps;
    this.#after = after;
    this.#writer = new SseWriter(call, { clock: deps.clock, ...(deps.keepAliveMs !== undefined && { keepAliveMs: deps.keepAliveMs }) });
  }

  /** Sink of a turn that runs for this reader alone: it waits for the reader and cannot be continued. */
  get sink(): TurnSink {
    return {
      text: (fragment) => this.#token(fragment),
      flush: () => this.#writer.flush(),
      drained: () => this.#writer.drained(),
    };
  }

  /** Passes on what the turn under the key streams, starting after the fragment in `Last-Event-ID`. */
  async follow(key: string, request: TurnRequest, context: CallContext): Promise<KeptOutcome> {
    this.#keyed = true;
    const turn = await this.#deps.receipts.execute({ key, after: this.#after }, request, context);
    for (let text = await turn.next(); text !== undefined; text = await turn.next()) {
      if (text.gap) this.#gap(text.fragments.length === 0 ? null : text.firstId);
      let id = text.firstId;
      for (const fragment of text.fragments) this.#token(fragment, id++);
      if (!this.#writer.flush()) await this.#writer.drained();
    }
    // A reader that left does not wait for the end of the turn.
    if (context.signal.aborted) {
      const reason: unknown = context.signal.reason;
      throw reason instanceof AppError ? reason : new AppError('cancelled', 'The client disconnected');
    }
    return turn.outcome;
  }

  finish(outcome: KeptOutcome, forOwner: boolean): void {
    // Text that no model streamed to this reader: the answer of a command, or of a turn that ended before the reader connected.
    if (!this.#begun && this.#after === 0 && outcome.text !== '') this.#token(toFragment(outcome.text), this.#keyed ? 1 : undefined);
    const failure = failureOf(outcome, forOwner);
    if (failure === undefined || (endedEarly(outcome) && (this.#begun || this.#after > 0))) {
      this.#push(`event: done\ndata: ${JSON.stringify(toChatResult(outcome))}\n\n`);
      this.#writer.end();
    } else this.fail(failure);
  }

  fail(failure: unknown): void {
    failStream(this.#call, this.#writer, failure, { produced: this.#begun, log: this.#deps.log });
  }

  #token(fragment: JsonFragment, id?: number): void {
    this.#push(`event: token\n${id === undefined ? '' : `id: ${id}\n`}data: {"delta":"${fragment}"}\n\n`);
  }

  #gap(resumesAt: number | null): void {
    this.#push(`event: gap\ndata: ${JSON.stringify({ resumesAt } satisfies ApiChatGap)}\n\n`);
  }

  #push(text: string): void {
    this.#begun = true;
    this.#writer.push(text);
  }
}
