import * as z from 'zod';

/**
 * Scopes of access tokens (http-gateway.md §5). `*` contains `admin`, `admin` contains `rpc`;
 * `api` opens only `/v1`, `ws` only lets a socket be opened, `mcp-client` only the MCP endpoint.
 */
export const tokenScopes = ['rpc', 'api', 'ws', 'admin', 'mcp-client', '*'] as const;
export const TokenScope = z.enum(tokenScopes).meta({ id: 'TokenScope' });
export type TokenScope = (typeof tokenScopes)[number];

/** Scope that a method requires. */
export type MethodScope = 'rpc' | 'admin';

/**
 * Scope that a route requires: `none` accepts everyone, `any` every valid token (`/rpc`, where each method has its
 * own scope), `v1` exactly `rpc`, `api` or `*`, `socket` allows a WebSocket to be opened, the rest are the scopes
 * of the same name.
 */
export type RouteScope = 'none' | 'any' | 'v1' | 'socket' | 'rpc' | 'admin' | 'mcp-client';

const sufficient: Record<Exclude<RouteScope, 'none'>, readonly TokenScope[]> = {
  any: tokenScopes,
  v1: ['rpc', 'api', '*'],
  socket: ['ws', 'rpc', 'admin', '*'],
  rpc: ['rpc', 'admin', '*'],
  admin: ['admin', '*'],
  'mcp-client': ['mcp-client', '*'],
};

/** Whether a token with `granted` scopes may use something that requires `needed`. */
export function allows(granted: readonly TokenScope[], needed: RouteScope): boolean {
  return needed === 'none' || granted.some((scope) => sufficient[needed].includes(scope));
}

/** Names the required scopes in a refusal: `v1` and `socket` are not scopes of tokens. */
export function scopeNames(needed: RouteScope): string {
  if (needed === 'v1') return "'rpc' or 'api'";
  return needed === 'socket' ? "'ws'" : `'${needed}'`;
}

/** An empty list means all scopes (http-gateway.md §5); it is stored as `*` so that nothing downstream can forget it. */
export function normalizeScopes(scopes: readonly TokenScope[]): TokenScope[] {
  return scopes.length === 0 || scopes.includes('*') ? ['*'] : [...new Set(scopes)];
}

/** Whether `inner` allows nothing that `outer` does not: the rule for minting and rotating tokens. */
export function containsScopes(outer: readonly TokenScope[], inner: readonly TokenScope[]): boolean {
  const wide = normalizeScopes(outer);
  return normalizeScopes(inner).every((scope) => wide.includes('*') || wide.includes(scope) || (scope === 'rpc' && wide.includes('admin')));
}
