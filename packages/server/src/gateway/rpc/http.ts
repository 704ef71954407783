import type { RpcReply } from '@gatehouse/contract';
import { AppError } from '../../kernel/app-error.ts';
import type { RateLimiter } from '../../kernel/limiter.ts';
import { readJsonBody } from '../body.ts';
import { retryAfterSeconds, rpcFailure } from '../error-body.ts';
import type { HttpCall } from '../http-call.ts';
import { sendEmpty, sendJson } from '../reply.ts';
import { type RequestLimits, setQuotaHeaders } from '../request-limits.ts';
import { answer, type Dispatch, replyId } from './dispatch.ts';
import { parseMessages } from './parse-messages.ts';

/** How much of a request beyond the rate limit is read, to find its ids. */
const maxRefusedBytes = 65_536;

/** `POST /rpc` (decisions §5): 200 with a reply or a batch of them, 204 for notifications only, 400 for invalid JSON. */
export function createRpcRoute(deps: {
  readonly dispatch: Dispatch;
  readonly bodyLimit: () => number;
  readonly limiter: RateLimiter;
  readonly refusalOf: RequestLimits['refusalOf'];
}): (call: HttpCall) => Promise<void> {
  return async (call) => {
    if (call.refusal !== undefined) return refuseAll(call, call.refusal);
    const payload = await readJsonBody(call, deps.bodyLimit(), parseMessages);
    const context = call.context();
    const reply = await answer(payload, call.requestId, async (message, index) => {
      // The request itself already counted for the first entry.
      const quota = index === 0 ? undefined : deps.limiter.take(`token:${context.identity.tokenId}`);
      if (quota !== undefined) setQuotaHeaders(call, quota, deps.limiter.policy);
      if (quota === undefined) return deps.dispatch(message, context);
      const refusal = quota.allowed
        ? deps.refusalOf(context.identity.tokenId)
        : new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs });
      return refusal === undefined ? deps.dispatch(message, context) : refused(message, refusal, call.requestId);
    });
    if (reply === undefined) sendEmpty(call, 204);
    else sendJson(call, 200, reply);
  };
}

/** Answers 429 with the ids of the messages that are not executed, as far as they can be read. */
async function refuseAll(call: HttpCall, refusal: AppError): Promise<void> {
  call.failureStatus = refusal.entry.http;
  const retryAfter = retryAfterSeconds(refusal);
  if (retryAfter !== undefined) call.setHeader('retry-after', String(retryAfter));
  const payload = await readJsonBody(call, maxRefusedBytes, parseMessages).catch(() => undefined);
  const reply = await answer(payload, call.requestId, async (message) => refused(message, refusal, call.requestId));
  sendJson(call, refusal.entry.http, reply ?? rpcFailure(refusal, call.requestId));
}

function refused(message: unknown, refusal: AppError, requestId: string): RpcReply | undefined {
  const id = replyId(message);
  return id === undefined ? undefined : rpcFailure(refusal, requestId, id);
}
