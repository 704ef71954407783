import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, ownerOf, type CallContext } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { PendingConversations } from './pending.ts';
import type { ConversationAddress } from '../api.ts';
import { conversationRef, parseSessionKey, printSessionKey } from '../conversation.ts';
import { type ConversationRow, findConversation, findConversationsByKey, type Reach } from '../store.ts';

/** Returns the same error for unknown and foreign conversations, so that they are indistinguishable. */
export const notFound = () => new AppError('not_found', 'Conversation not found');

/** Returns what a call may see, within the token's agents: admins all, tokens their own, agents their own with their user. */
export function reachOf(call: CallContext): Reach {
  const agentIds = call.identity.agents ?? null;
  if (call.agentCaller === undefined) return { principalId: isAdmin(call) ? null : call.identity.principalId, agentIds };
  const { agentId, principalId } = call.agentCaller;
  return { principalId, agentIds: agentIds === null || agentIds.includes(agentId) ? [agentId] : [] };
}

/** Returns the part of a reach within one agent. */
export function reachWithin(reach: Reach, agentId: string): Reach {
  return { ...reach, agentIds: reach.agentIds?.includes(agentId) === false ? [] : [agentId] };
}

/** Identity of a conversation that may not be stored. */
export interface Named {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
}

export interface Addressing {
  /** Returns the key and agent of an address without reference, by default those of the calling token or agent. */
  keyOf(address: ConversationAddress, call: CallContext): Named;
  /** Resolves an address, with its row if it is within reach; `precondition_failed` for an ambiguous key. One query, two for keys of admins. */
  find(address: ConversationAddress, call: CallContext): Promise<{ readonly named: Named; readonly row: ConversationRow | undefined }>;
  /** Returns the row; throws `not_found` when there is none. */
  existing(address: ConversationAddress, call: CallContext): Promise<ConversationRow>;
  /** Like `find`, but throws `not_found` when the address names an unknown conversation. */
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
  /** Returns the row, or its substitute during the first turn. */
  async function byRef(ref: string, reach: Reach): Promise<ConversationRow | undefined> {
    // Found before the query: the turn may end, and store its conversation, after the query has looked.
    const begun = pending.find(ref, reach);
    return (await db.read(findConversation, { ref, ...reach })) ?? begun ?? pending.find(ref, reach);
  }

  /** Returns conversations of any principal with a key: at most two with a row, and those in their first turn. */
  async function byKey(agentId: string, sessionKey: string, reach: Reach): Promise<ConversationRow[]> {
    const before = pending.list(reach);
    const stored = await db.read(findConversationsByKey, { agentId, sessionKey, ...reach });
    const known = new Set(stored.map(({ ref }) => ref));
    return [
      ...stored,
      ...[...before, ...pending.list(reach)].filter((row) => {
        if (row.agentId !== agentId || row.sessionKey !== sessionKey || known.has(row.ref)) return false;
        known.add(row.ref);
        return true;
      }),
    ];
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
