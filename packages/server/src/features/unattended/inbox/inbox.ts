import { allows } from '@gatehouse/contract';
import type { Identity } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { type Operation, toCall } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { InboxApi, InboxMessage } from './api.ts';
import type { DeliveryApi } from '../../channels/delivery/api.ts';
import { type InboxReach, type InboxRow, listInbox, markInboxRead } from './store.ts';

export interface Inbox {
  readonly api: InboxApi;
  readonly methods: HandlersOf<'inbox.list' | 'inbox.markRead'>;
}

/** The built-in channel `gateway` for unattended agents; `deliverMessage` delivers in the transaction of the reported event. */
export function createInbox({
  db,
  bus,
  clock,
  deliver,
  delivery,
}: {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Delivers a message with its row in the outbox. */
  readonly deliver: Operation<InboxMessage, 'accepted' | 'repeated' | 'mismatch'>;
  /** Takes messages that are addressed to a chat. */
  readonly delivery: Pick<DeliveryApi, 'storeCall' | 'wake'>;
}): Inbox {
  return {
    api: {
      deliverCall: (message) => (message.parts === undefined ? toCall(deliver, message) : delivery.storeCall(message.parts)),
      announce({ parts, id, source, level, agentId, conversationRef, principalId, atMs }) {
        if (parts !== undefined) return delivery.wake(parts[0]?.instance ?? '');
        bus.emit('inbox:message', { id, source, level, agentId, conversationRef, timestamp: atMs }, principalId);
      },
    },
    methods: {
      'inbox.list': async ({ unreadOnly, limit, before = null }, { identity }) => {
        const { rows, unread } = await db.read(listInbox, { ...reachOf(identity), unreadOnly, limit, before });
        return { messages: rows.map(shown), unread };
      },
      'inbox.markRead': async ({ ids = null }, { identity }) => ({
        marked: await db.write(markInboxRead, { ...reachOf(identity), ids, atMs: clock.now() }),
      }),
    },
  };
}

function reachOf({ scopes, principalId, agents }: Identity): InboxReach {
  return { principalId: allows(scopes, 'admin') ? null : principalId, agentIds: agents ?? null };
}

/** Matches keys of approval gate questions, which name the gate (features/delegation/graph/run/announce.ts). */
const questionKey = /^graph:(?<graphId>gr_[0-9a-f-]{36}):(?:ask|reminder):(?<nodeId>.+):\d+$/;

function asksIn({ source, opKey }: InboxRow) {
  const { graphId, nodeId } = (source === 'graph' ? questionKey.exec(opKey)?.groups : undefined) ?? {};
  return graphId === undefined || nodeId === undefined ? {} : { asks: { graphId, nodeId } };
}

const shown = (row: InboxRow) => {
  const { id, source, level, agentId, conversationRef, text, atMs, readAtMs } = row;
  return { id, source, level, agentId, conversationRef, text, ...asksIn(row), createdAt: atMs, readAt: readAtMs };
};
