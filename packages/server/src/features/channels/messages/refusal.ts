import type { ChatAuthor } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { rulesOf } from '../../../channels/people.ts';
import type { InstanceConfig } from '../instances/api.ts';
import { findPairing } from './store.ts';

export interface RefusalDeps {
  readonly db: Db;
  /** The configuration of an enabled instance. */
  readonly configOf: (instance: string) => InstanceConfig | undefined;
}

/** Returns why somebody may not write any more with the authority of an earlier message; undefined while they may. */
export type RefusalOf = (author: ChatAuthor & { readonly isBot?: boolean | undefined }) => Promise<string | undefined>;

/** Decides again about an author: what was configured or approved may have ended since. */
export function createRefusalOf({ db, configOf }: RefusalDeps): RefusalOf {
  return async ({ to: { instance, channelType, conversationId, conversationKind }, senderId, trust, isBot = false }) => {
    const config = configOf(instance);
    const channel = `the channel "${instance}"`;
    if (config?.type !== channelType) return `${channel} was disabled, removed or replaced`;
    if (isBot && config.bots === 'off') return `${channel} does not answer bots any more`;
    const rules = conversationKind === 'shared' ? rulesOf(config, conversationId) : undefined;
    if (rules?.isOpen === false) return `the group ${conversationId} of ${channel} is not answered any more`;
    const isOwner = config.owners.includes(senderId);
    if (trust === 'owner') return isOwner ? undefined : `${senderId} is not an owner of ${channel} any more`;
    const removed = `${senderId} may not write to ${channel} any more`;
    if (rules !== undefined) return rules.allowFrom?.includes(senderId) !== false || isOwner ? undefined : removed;
    if (trust === 'guest' && !isBot) return config.dm.policy === 'open' ? undefined : removed;
    if (config.dm.policy === 'disabled') return removed;
    if (config.dm.allowFrom.includes(senderId) || (isBot && config.dm.policy === 'open')) return undefined;
    const pairing = await db.read(findPairing, { instance, channelType, senderId });
    return pairing?.principalId == null ? `${senderId} is not paired with ${channel} any more` : undefined;
  };
}
