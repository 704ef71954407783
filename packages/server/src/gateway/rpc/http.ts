import { AppError } from '../../kernel/app-error.ts';
import { readJsonBody } from '../body.ts';
import { rpcFailure } from '../error-body.ts';
import type { HttpCall } from '../http-call.ts';
import type { RateLimiter } from '../limits.ts';
import { sendEmpty, sendJson } from '../reply.ts';
import { answer, type Dispatch, replyId } from './dispatch.ts';

/** `POST /rpc` (decisions §5): 200 with a reply or a batch of them, 204 for notifications only, 400 for what is no JSON. */
export function createRpcRoute(deps: {
  readonly dispatch: Dispatch;
  readonly bodyLimit: number;
  readonly limiter: RateLimiter;
}): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const payload = await readJsonBody(call, deps.bodyLimit);
    const context = call.context();
    const reply = await answer(payload, call.requestId, async (message, index) => {
      // The request itself paid for the first entry.
      const quota = index === 0 ? undefined : deps.limiter.take(`token:${context.identity.tokenId}`);
      if (quota?.allowed !== false) return deps.dispatch(message, context);
      const id = replyId(message);
      return id === undefined
        ? undefined
        : rpcFailure(new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs }), call.requestId, id);
    });
    if (reply === undefined) sendEmpty(call, 204);
    else sendJson(call, 200, reply);
  };
}
