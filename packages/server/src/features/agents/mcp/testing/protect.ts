import type { AuthorizationServer } from '@gatehouse/testkit';
import type { McpTestServer } from './http-server.ts';

export interface Protection {
  /** Scopes that each method needs; `default` for the rest. */
  scopes: Readonly<Record<string, readonly string[]>>;
  /** What the server says that it is. */
  resource: string;
  /** Refuses also valid tokens. */
  refusesAll: boolean;
  /** Tokens that requests came with. */
  readonly seen: string[];
}

/** Makes an MCP server of tests accept only requests with a token of this authorization server. */
export function protect(mcp: McpTestServer, issuer: AuthorizationServer): Protection {
  const self: Protection = { scopes: {}, resource: mcp.url, refusesAll: false, seen: [] };
  const metadataPath = '/.well-known/oauth-protected-resource/mcp';
  mcp.intercept = (request, response, message) => {
    if (request.url === metadataPath) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ resource: self.resource, authorization_servers: [issuer.issuer], scopes_supported: ['tools:read'] }));
      return true;
    }
    const metadata = `resource_metadata="http://127.0.0.1:${mcp.port}${metadataPath}"`;
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    self.seen.push(token);
    const granted = self.refusesAll ? undefined : issuer.scopesOf(token);
    if (granted === undefined) {
      response.writeHead(401, { 'www-authenticate': `Bearer ${metadata}` }).end();
      return true;
    }
    const needed = self.scopes[message?.method ?? ''] ?? self.scopes['default'] ?? [];
    if (needed.every((scope) => granted.includes(scope))) return false;
    response.writeHead(403, { 'www-authenticate': `Bearer error="insufficient_scope", scope="${needed.join(' ')}", ${metadata}` }).end();
    return true;
  };
  return self;
}
