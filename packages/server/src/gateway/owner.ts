import type { Identity } from '../kernel/call-context.ts';

/** The caller of the owner-only socket: a user who can open it owns the installation. No token has this id, because it contains a colon. */
export const owner: Identity = { principalId: 'owner', tokenId: 'local:owner', scopes: ['*'] };
