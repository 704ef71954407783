import { createHash } from 'node:crypto';
import type { FinishedAuthorization, McpAuthorizationApi } from '../../features/agents/mcp/api.ts';
import type { HttpCall } from '../http-call.ts';

const style =
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem}h1{font-size:1.4rem;margin:0 0 .5rem}p{margin:0}';
const styleHash = createHash('sha256').update(style).digest('base64');

/** The address holds a code: nothing on the page, and no other page, may learn it. */
const headers: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'content-type': 'text/html; charset=utf-8',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
};

/** `GET /oauth/callback`: completes an authorization that `mcp.authorize` began, and says on a page what happened. */
export function createOAuthCallbackRoute(authorization: McpAuthorizationApi): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const { search, traceId, requestId, incoming } = call;
    // HEAD must not use up the state.
    const finished =
      incoming.method === 'HEAD' ? undefined : await authorization.finish(new URLSearchParams(search), { traceId, requestId, signal: call.signal });
    for (const [name, value] of Object.entries(headers)) call.setHeader(name, value);
    const page = finished === undefined ? '' : render(finished);
    call.setHeader('content-length', String(Buffer.byteLength(page)));
    call.writeHead(finished?.status ?? 200);
    call.outgoing.end(page);
  };
}

function render({ title, text }: FinishedAuthorization): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${escapeHtml(title)} · Gatehouse</title><style>${style}</style><main><h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p></main></html>\n`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}
