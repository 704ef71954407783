import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { RateLimiter } from '../../kernel/limiter.ts';
import { readJsonBody } from '../body.ts';
import type { HttpCall } from '../http-call.ts';
import type { RequestLimits } from '../request-limits.ts';
import type { McpConfig } from './config.ts';
import type { McpEndpoint } from './endpoint.ts';
import { sendWebResponse } from './web-response.ts';

/** The same limit as on `/rpc`. */
const maxBatch = 50;
const retryAfterMs = 5_000;
/** How long aborted calls of a token that is gone may take to send their failure. */
const finalEventMs = 1_000;

export interface McpRoute extends AsyncDisposable {
  readonly serve: (call: HttpCall) => Promise<void>;
  /** Ends the streams that only wait for notifications; running calls continue. */
  drain(): void;
  endToken(tokenId: string): void;
}

/** Serves `/mcp` (decisions §2): the checks before the protocol sees a request. MCP modules are loaded at the first one. */
export function createMcpRoute(deps: {
  readonly load: () => Promise<McpEndpoint>;
  readonly limits: Pick<McpConfig, 'maxCallsPerToken'>;
  readonly bodyLimit: () => number;
  readonly limiter: RateLimiter;
  readonly refusalOf: RequestLimits['refusalOf'];
  readonly clock: Clock;
}): McpRoute {
  let loading: Promise<McpEndpoint> | undefined;
  const openByToken = new Map<string, number>();
  const waiting = new Set<HttpCall>();

  function admit(call: HttpCall, tokenId: string): void {
    const open = openByToken.get(tokenId) ?? 0;
    if (open >= deps.limits.maxCallsPerToken)
      throw new AppError('rate_limited', `This token has ${open} MCP requests open, as many as gateway.mcp.maxCallsPerToken allows`, {
        retryAfterMs,
      });
    openByToken.set(tokenId, open + 1);
    call.outgoing.once('close', () => {
      const left = (openByToken.get(tokenId) ?? 0) - 1;
      if (left > 0) openByToken.set(tokenId, left);
      else openByToken.delete(tokenId);
    });
  }

  /** The request itself already counted for the first message. */
  function payForBatch(body: readonly unknown[], tokenId: string): void {
    if (body.length === 0 || body.length > maxBatch) throw new AppError('invalid_envelope', `A batch must have 1 to ${maxBatch} messages`);
    if (body.length === 1) return;
    const quota = deps.limiter.take(`token:${tokenId}`, body.length - 1);
    if (!quota.allowed) throw new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs });
    const refusal = deps.refusalOf(tokenId, body.length - 1);
    if (refusal !== undefined) throw refusal;
  }

  async function endpoint(): Promise<McpEndpoint> {
    loading ??= deps.load();
    try {
      return await loading;
    } catch (error) {
      loading = undefined;
      throw error;
    }
  }

  return {
    async serve(call) {
      const method = call.incoming.method ?? '';
      if (method === 'HEAD') {
        call.setHeader('allow', 'GET, POST, DELETE');
        throw new AppError('method_not_allowed', 'This path takes GET, POST, DELETE');
      }
      const { tokenId } = call.context().identity;
      admit(call, tokenId);
      const body = method === 'POST' ? await readJsonBody(call, deps.bodyLimit()) : undefined;
      if (Array.isArray(body)) payForBatch(body, tokenId);
      const { response, done } = await (await endpoint()).serve(call, body);
      try {
        const endsItself = method !== 'GET' && !isListening(body);
        if (!endsItself) waiting.add(call);
        await sendWebResponse(call, response, { clock: deps.clock, endsItself });
      } finally {
        waiting.delete(call);
        done();
      }
    },
    drain() {
      for (const call of waiting) call.cutStream(new AppError('unavailable', 'The server is shutting down'));
    },
    endToken(tokenId) {
      if (loading === undefined) return;
      // The failures of its aborted calls are sent through its sessions.
      deps.clock.after(finalEventMs, () => void loading?.then((loaded) => loaded.endToken(tokenId)).catch(() => {}));
    },
    async [Symbol.asyncDispose]() {
      const loaded = await loading?.catch(() => undefined);
      await loaded?.[Symbol.asyncDispose]();
    },
  };
}

function isListening(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'method' in body && body.method === 'subscriptions/listen';
}
