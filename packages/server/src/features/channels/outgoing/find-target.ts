import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { removedText } from '../../../channels/people.ts';
import type { Destination } from '../delivery/api.ts';
import type { InstanceConfig } from '../instances/api.ts';
import type { Coordinates, FindTarget, Target } from './api.ts';
import { findOwnMessage, findPaired, findReceived, findSent, type Reach } from './store.ts';

export interface FindTargetDeps {
  readonly db: Db;
  /** The configuration of an enabled instance. */
  readonly configOf: (instance: string) => InstanceConfig | undefined;
  readonly defaultAgentId: () => string;
  /** Whether the people of a direct conversation may be written to. */
  readonly mayReceive: (to: Destination, config: InstanceConfig) => Promise<boolean>;
}

/**
 * An administrator reaches the conversations of all agents of the token, another token those of its principal, and an agent its own with the
 * user that it works for: those that people have begun, never a new one.
 */
export function createFindTarget({ db, configOf, defaultAgentId, mayReceive }: FindTargetDeps): FindTarget {
  return async ({ endpoint, channel_type: type = endpoint.channelType, channel_id: id = endpoint.conversationId }, call) => {
    if (type !== endpoint.channelType) throw differs('channel_type');
    if (id !== endpoint.conversationId) throw differs('channel_id');
    const to = destinationOf(endpoint);
    const place = { to, reach: reachOf(call) };
    const found =
      (await db.read(findReceived, place)) ?? (await db.read(findSent, place)) ?? (isPlain(to) ? await db.read(findPaired, place) : undefined);
    const config = configOf(to.instance);
    if (found === undefined || (config !== undefined && config.type !== to.channelType)) throw unknownConversation();
    const agentId = found.agentId ?? config?.agent ?? defaultAgentId();
    if (!mayUse(agentId, call)) throw unknownConversation();
    if (config !== undefined && to.conversationKind === 'direct' && !(await mayReceive(to, config)))
      throw new AppError('precondition_failed', removedText, { param: 'endpoint' });
    return { to, agentId, principalId: found.principalId ?? ownerOf(call), conversationRef: found.conversationRef };
  };
}

/** Pairings cover direct messages only. */
const isPlain = ({ threadId, conversationKind }: Destination): boolean => threadId === null && conversationKind === 'direct';

/** Returns which conversations a caller reaches. */
export function reachOf(call: CallContext): Reach {
  const { agentCaller, identity } = call;
  if (agentCaller !== undefined)
    return { agentIds: [agentCaller.agentId], principalId: agentCaller.principalId, conversationRef: agentCaller.conversationRef };
  return { agentIds: identity.agents ?? null, principalId: isAdmin(call) ? null : identity.principalId, conversationRef: null };
}

const mayUse = (agentId: string, { agentCaller, identity }: CallContext): boolean =>
  agentCaller === undefined ? identity.agents?.includes(agentId) !== false : agentCaller.agentId === agentId;

export const destinationOf = ({
  channelType,
  channelInstanceId,
  conversationId,
  threadId,
  conversationKind,
}: Coordinates['endpoint']): Destination => ({
  instance: channelInstanceId,
  channelType,
  conversationId,
  threadId: threadId ?? null,
  conversationKind,
});

/** One error for every field that differs, for conversations of others and for those that do not exist. */
const unknownConversation = (): AppError =>
  new AppError('not_found', 'Conversation not found: expected an endpoint whose fields are all those of one conversation with an agent', {
    param: 'endpoint',
  });

function differs(param: 'channel_type' | 'channel_id'): AppError {
  return new AppError('precondition_failed', `${param}: expected that of the endpoint`, { param });
}

/** Returns the platform's id of a message of the conversation; undefined when the platform has given it none. */
export async function platformIdOf(db: Db, { to }: Target, id: string): Promise<string | undefined> {
  if (!/^(?:cm|ob)_/.test(id)) return id;
  const found = await db.read(findOwnMessage, { to, id });
  if (found === undefined) throw new AppError('not_found', 'Message not found in this conversation', { param: 'message_id' });
  return found.platformId ?? undefined;
}
