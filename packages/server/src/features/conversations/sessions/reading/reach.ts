import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, ownerOf, type CallContext } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { ConversationAddress } from '../../turns/api.ts';
import type { PendingConversations } from './pending.ts';
import { conversationRef, parseSessionKey, printSessionKey } from '../conversation.ts';
import { type ConversationRow, findConversation, findConversationsByKey, type Reach } from '../store.ts';

/** One text for unknown and foreign alike: the answer must not tell them apart. */
export const notFound = () => new AppError('not_found', 'Conversation not found');

/** What a call may see: an agent its own conversations of the principal it works for, a token its own, an admin all; within the agents of the token. */
export function reachOf(call: CallContext): Reach {
  const agentIds = call.identity.agents ?? null;
  if (call.agentCaller === undefined) return { principalId: isAdmin(call) ? null : call.identity.principalId, agentIds };
  const { agentId, principalId } = call.agentCaller;
  return { principalId, agentIds: agentIds === null || agentIds.includes(agentId) ? [agentId] : [] };
}

/** The part of a reach that lies within one agent. */
export function reachWithin(reach: Reach, agentId: string): Reach {
  return { ...reach, agentIds: reach.agentIds?.includes(agentId) === false ? [] : [agentId] };
}

/** Identity of a conversation that may not have been stored. */
export interface Named {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
}

export interface Addressing {
  /** The key and agent that an address without reference means; by default the conversation of the caller's own token, or of the agent that calls. */
  keyOf(address: ConversationAddress, call: CallContext): Named;
  /** What an address means, and the row if there is one within reach; `precondition_failed` when a key means several. One query, one more for keys of admins. */
  find(address: ConversationAddress, call: CallContext): Promise<{ readonly named: Named; readonly row: ConversationRow | undefined }>;
  /** The row, or `not_found`. */
  existing(address: ConversationAddress, call: CallContext): Promise<ConversationRow>;
  /** As `find`, but `not_found` when the address names a conversation that is not there. */
  ownOrExisting(address: ConversationAddress, call: CallContext): Promise<{ readonly named: Named; readonly row: ConversationRow | undefined }>;
}

export function createAddressing({
  db,
  defaultAgentId,
  pending,
}: {
  readonly db: Db;
  readonly defaultAgentId: string;
  readonly pending: PendingConversations;
}): Addressing {
  /** The row, or what stands for it while the first turn runs. */
  async function byRef(ref: string, reach: Reach): Promise<ConversationRow | undefined> {
    return (await db.read(findConversation, { ref, ...reach })) ?? pending.find(ref, reach);
  }

  /** Of the key of an agent, whoever's they are: at most two with a row, and those whose first turn runs. */
  async function byKey(agentId: string, sessionKey: string, reach: Reach): Promise<ConversationRow[]> {
    const stored = await db.read(findConversationsByKey, { agentId, sessionKey, ...reach });
    const known = new Set(stored.map(({ ref }) => ref));
    const begun = pending.list(reach).filter((row) => row.agentId === agentId && row.sessionKey === sessionKey && !known.has(row.ref));
    return [...stored, ...begun];
  }

  function keyOf(address: ConversationAddress, call: CallContext): Named {
    const agentId = address.agentId ?? call.agentCaller?.agentId ?? defaultAgentId;
    const key = address.sessionKey === undefined ? { userId: call.identity.tokenId, channelId: 'gateway' } : parseSessionKey(address.sessionKey);
    return { agentId, sessionKey: printSessionKey(key), ref: conversationRef(agentId, ownerOf(call), key) };
  }

  const namedBy = ({ ref, sessionKey, agentId }: ConversationRow): Named => ({ ref, sessionKey, agentId });

  async function find(address: ConversationAddress, call: CallContext) {
    const own = keyOf(address, call);
    const reach = reachOf(call);
    const calling = isNamed(address) || address.agentId !== undefined ? undefined : call.agentCaller?.conversationRef;
    const ref = address.conversationRef ?? calling;
    if (ref !== undefined) {
      const row = await byRef(ref, address.agentId === undefined ? reach : reachWithin(reach, address.agentId));
      const meant = row !== undefined && (address.sessionKey === undefined || own.sessionKey === row.sessionKey) ? row : undefined;
      return { named: meant === undefined ? { ...own, ref } : namedBy(meant), row: meant };
    }
    const row = await byRef(own.ref, reach);
    if (row !== undefined || address.sessionKey === undefined || !isAdmin(call)) return { named: own, row };
    const others = await byKey(own.agentId, own.sessionKey, reach);
    if (others.length > 1)
      throw new AppError('precondition_failed', `Several conversations have the key ${own.sessionKey}; name one by conversationRef`, {
        param: 'sessionKey',
      });
    const [other] = others;
    return { named: other === undefined ? own : namedBy(other), row: other };
  }

  return {
    keyOf,
    find,
    async existing(address, call) {
      const { row } = await find(address, call);
      if (row === undefined) throw notFound();
      return row;
    },
    async ownOrExisting(address, call) {
      const found = await find(address, call);
      if (found.row === undefined && isNamed(address)) throw notFound();
      return found;
    },
  };
}

const isNamed = (address: ConversationAddress) => address.conversationRef !== undefined || address.sessionKey !== undefined;
