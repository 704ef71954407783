import type { ReceiptsApi } from '../../features/conversations/receipts/api.ts';
import type { TurnsApi } from '../../features/conversations/turns/api.ts';
import { isAdmin } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { HttpCall } from '../http-call.ts';
import { sendJson } from '../reply.ts';
import { idempotencyKeyOf, readChatRequest } from './api-chat-request.ts';
import { failureOf, toChatResult } from './api-chat-result.ts';

export interface ApiChatDeps {
  readonly turns: TurnsApi;
  readonly receipts: ReceiptsApi;
  readonly bodyLimit: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly keepAliveMs?: number | undefined;
}

/** `POST /api/chat` (http-gateway.md §4.6, decisions §4). */
export function createApiChatRoute({ turns, receipts, bodyLimit }: ApiChatDeps): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const key = idempotencyKeyOf(call);
    const request = await readChatRequest(call, bodyLimit());
    const context = call.context();
    const outcome = await (key === undefined ? turns.execute(request, context) : (await receipts.execute({ key }, request, context)).outcome);
    if (context.signal.aborted) return;
    const failure = failureOf(outcome, isAdmin(context));
    if (failure !== undefined && outcome.text === '') throw failure;
    sendJson(call, 200, toChatResult(outcome));
  };
}
