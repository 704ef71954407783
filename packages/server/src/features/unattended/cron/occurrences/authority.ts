import type { ChatAuthor, Identity, IdentityOf } from '../../../../kernel/call-context.ts';
import type { Destination } from '../../../channels/delivery/api.ts';
import { chatOf } from './finish.ts';
import type { CronWork } from './work.ts';

export interface AuthorityDeps {
  /** Returns the current identity of a token; undefined when it was revoked. */
  readonly identityOf: IdentityOf;
  /** Whether a principal of the chats may still use agents. */
  readonly mayWrite: (principalId: string, chat: Destination | undefined) => Promise<boolean>;
  /** Returns why somebody may not write in a chat any more with the authority that they had. */
  readonly refusalOf: (author: ChatAuthor) => Promise<string | undefined>;
}

type Owned = Pick<CronWork, 'tokenId' | 'principalId' | 'agentId' | 'author' | 'policies'>;

/** Returns the identity that a job acts with: that of its token, or of the chat that it was added in while its author may write there; otherwise why it has none. */
export async function authorityOf(deps: AuthorityDeps, { tokenId, principalId, agentId, author, policies }: Owned): Promise<Identity | string> {
  if (tokenId !== principalId) return deps.identityOf(tokenId, principalId) ?? withoutToken;
  const refusal = author === undefined ? await refusalOfUnknown(deps, principalId, policies.deliveryTarget) : await deps.refusalOf(author);
  if (refusal !== undefined) return `The authority that the job was added with has ended: ${refusal}.`;
  return { principalId, tokenId, scopes: [], agents: [agentId] };
}

export const withoutToken = 'The token that created the job was revoked or may no longer use the agent.';

/** Jobs of earlier versions have no author: a group is known by the chat that they deliver to. */
async function refusalOfUnknown({ mayWrite }: AuthorityDeps, principalId: string, target: CronWork['policies']['deliveryTarget']) {
  const chat = target && chatOf(target.destinationEndpoint);
  if (await mayWrite(principalId, chat)) return undefined;
  return 'nobody is known who added it in a chat and may still write there; add it again to run it';
}
