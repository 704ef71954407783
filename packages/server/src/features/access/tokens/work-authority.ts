import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext, IdentityOf } from '../../../kernel/call-context.ts';
import type { TokenWork, WorkAuthority } from './api.ts';
import { type Grant, widerThan } from './minting.ts';

/** Checks callers that change work of another token against what that token may do now (docs/decisions/0120). */
export function createWorkAuthority(identityOf: IdentityOf): WorkAuthority {
  /** Returns how the work exceeds the caller; undefined when it does not. */
  function excessOf(work: TokenWork, { identity: caller }: CallContext): string | undefined {
    if (work.tokenId === caller.tokenId) return undefined;
    const grant = grantOf(work);
    // A token that is gone may return with the configuration, with any authority.
    if (grant === undefined) return widerThan(caller, { scopes: ['*'] }) && 'that token is gone, and only a token without limits may change its work';
    return widerThan(caller, work.isRepeated ? grant : { ...grant, expiresAt: caller.expiresAt });
  }

  function grantOf({ tokenId, principalId, agentId }: TokenWork): Grant | undefined {
    return tokenId === principalId ? { scopes: [], agents: [agentId] } : identityOf(tokenId, principalId);
  }

  return {
    covers: (work, call) => excessOf(work, call) === undefined,
    assertCovers(work, call, param) {
      const excess = excessOf(work, call);
      if (excess !== undefined) throw new AppError('denied', `${param}: the change would act with another token: ${excess}`, { param });
    },
  };
}
