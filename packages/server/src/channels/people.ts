import type { CallContext, ChatEndpoint } from '../kernel/call-context.ts';

/** The keys of a channel about its agents and people. */
export interface PeopleConfig {
  readonly agent?: string | undefined;
  readonly agents: readonly string[];
  readonly owners: readonly string[];
  readonly dm: { readonly policy: 'pairing' | 'allowlist' | 'open' | 'disabled'; readonly allowFrom: readonly string[] };
  readonly groups: {
    readonly policy: 'enabled' | 'allowlist' | 'disabled';
    readonly requireMention: boolean;
    readonly chats: Readonly<
      Record<
        string,
        {
          readonly enabled: boolean;
          readonly agent?: string | undefined;
          readonly requireMention?: boolean | undefined;
          readonly allowFrom?: readonly string[] | undefined;
        }
      >
    >;
  };
}

/** Returns the only agents that a caller may see; null: all. */
export const agentsOf = ({ identity }: CallContext): readonly string[] | null => identity.agents ?? null;

/** Returns every agent that people reach over a channel. */
export function agentsBehind({ agent, agents, groups }: PeopleConfig, defaultId: string): readonly string[] {
  const ofGroups = Object.values(groups.chats).flatMap((chat) => chat.agent ?? []);
  return [...new Set([agent ?? defaultId, ...agents, ...ofGroups])];
}

/** Returns the agents that may answer in a conversation: first the one that does when nobody chose another. */
export function agentsIn(
  { agent, agents, groups }: PeopleConfig,
  { conversationId, conversationKind }: Pick<ChatEndpoint, 'conversationId' | 'conversationKind'>,
  defaultId: string,
): readonly [string, ...string[]] {
  const own = conversationKind === 'shared' && Object.hasOwn(groups.chats, conversationId) ? groups.chats[conversationId]?.agent : undefined;
  const first = own ?? agent ?? defaultId;
  return [first, ...agents.filter((id) => id !== first)];
}

/** Whether a caller may see and change a channel, and who is admitted to it: that concerns every agent behind it. */
export function mayAdminister(config: PeopleConfig, defaultId: string, call: CallContext): boolean {
  const agents = agentsOf(call);
  return agents === null || agentsBehind(config, defaultId).every((id) => agents.includes(id));
}

/** The rules of a group. */
export interface GroupRules {
  readonly isOpen: boolean;
  readonly requireMention: boolean;
  /** The only senders apart from owners; undefined: everybody. */
  readonly allowFrom: readonly string[] | undefined;
}

/** Returns the rules of a group: those of the channel, with what it has different. */
export function rulesOf({ groups }: PeopleConfig, conversationId: string): GroupRules {
  const chat = Object.hasOwn(groups.chats, conversationId) ? groups.chats[conversationId] : undefined;
  return {
    isOpen: groups.policy !== 'disabled' && (chat === undefined ? groups.policy === 'enabled' : chat.enabled),
    requireMention: chat?.requireMention ?? groups.requireMention,
    allowFrom: chat?.allowFrom,
  };
}

/** People who may write directly to the agent over a channel, by its configuration. */
export interface Admits {
  /** Ids that need no pairing. */
  readonly listed: readonly string[];
  readonly arePaired: boolean;
  /** Everybody. */
  readonly isOpen: boolean;
}

/** Returns who may write directly over a channel. */
export function admitsOf({ owners, dm: { policy, allowFrom } }: PeopleConfig): Admits {
  return { listed: policy === 'disabled' ? owners : [...owners, ...allowFrom], arePaired: policy !== 'disabled', isOpen: policy === 'open' };
}

/** What a message that is not for the people of a conversation any more is refused with. */
export const removedText = 'Nobody in this conversation may write to the agent any more: a pairing has ended, or the configuration has changed';
