import { containsScopes, type TokenScope } from '@gatehouse/contract';
import type { Identity } from '../../../kernel/call-context.ts';

export interface Grant {
  readonly scopes: readonly TokenScope[];
  readonly agents?: readonly string[] | undefined;
  readonly expiresAt?: number | undefined;
}

/** Returns how a grant exceeds the caller's own; undefined when it does not (decisions §2: no token creates a wider one). */
export function widerThan(caller: Identity, grant: Grant): string | undefined {
  if (!containsScopes(caller.scopes, grant.scopes)) return 'its scopes are wider than those of the calling token';
  const allowed = caller.agents;
  if (allowed !== undefined && (grant.agents === undefined || !grant.agents.every((agent) => allowed.includes(agent))))
    return 'it reaches agents that the calling token does not';
  if (caller.expiresAt !== undefined && (grant.expiresAt === undefined || grant.expiresAt > caller.expiresAt))
    return 'it lasts longer than the calling token';
  return undefined;
}
