import type { ReceivedMessage } from '../../../channels/port.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Destination } from '../delivery/api.ts';
import type { InstanceConfig } from '../instances/api.ts';
import { rulesOf } from '../../../channels/people.ts';
import type { Known } from './gate.ts';
import { countBotTurns, findChoices, findJoined } from './conversations-store.ts';
import { findPairings, type PairingRow } from './store.ts';

const dayMs = 24 * 60 * 60_000;

/** What is stored about the senders and conversations of some messages. */
export interface Stored {
  /** Chosen agents by place. */
  readonly choices: Map<string, string>;
  known(message: ReceivedMessage): Known;
  /** Counts a message that starts a turn. */
  answered(message: ReceivedMessage): void;
}

/** Returns the key of a conversation, or of a thread of it. */
export const placeKey = ({ conversationId, threadId }: Pick<Destination, 'conversationId' | 'threadId'>): string =>
  JSON.stringify([conversationId, threadId]);

/** Returns what reads about the senders and conversations of messages; what one message changes counts for those behind it. */
export function createReadStored({ db, clock }: { readonly db: Db; readonly clock: Pick<Clock, 'now'> }) {
  /** Returns the choices of conversations, where there is one. */
  async function choicesOf(instance: string, config: InstanceConfig, received: readonly ReceivedMessage[]): Promise<Map<string, string>> {
    if (config.agents.length === 0 || received.length === 0) return new Map();
    const conversationIds = [...new Set(received.map(({ conversationId }) => conversationId))];
    const rows = await db.read(findChoices, { instance, channelType: config.type, conversationIds });
    return new Map(rows.map((row) => [placeKey({ ...row, threadId: row.threadId === '' ? null : row.threadId }), row.agentId]));
  }

  /** Returns the threads in which the agent was asked, of those where somebody writes without naming it. */
  async function joinedOf(instance: string, config: InstanceConfig, received: readonly ReceivedMessage[]): Promise<Set<string>> {
    const threads = new Map<string, Set<string>>();
    for (const { conversationKind, conversationId, threadId, mentionsUs } of received) {
      if (!config.groups.stickyThreads || conversationKind !== 'shared' || threadId === undefined || mentionsUs) continue;
      if (rulesOf(config, conversationId).requireMention) threads.set(conversationId, (threads.get(conversationId) ?? new Set()).add(threadId));
    }
    const joined = new Set<string>();
    for (const [conversationId, threadIds] of threads) {
      const found = await db.read(findJoined, { instance, conversationId, threadIds: [...threadIds], sinceMs: clock.now() - dayMs });
      for (const threadId of found) joined.add(placeKey({ conversationId, threadId }));
    }
    return joined;
  }

  /** Returns how many messages of bots were answered since a person wrote, by conversation. */
  async function botTurnsOf(instance: string, config: InstanceConfig, received: readonly ReceivedMessage[]): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    if (config.bots === 'off') return counts;
    for (const conversationId of new Set(received.flatMap((one) => (one.isBot ? [one.conversationId] : []))))
      counts.set(conversationId, await db.read(countBotTurns, { instance, conversationId, limit: config.maxBotExchanges }));
    return counts;
  }

  /** Returns the pairings of those who wrote directly, by sender. */
  async function pairingsOf(instance: string, channelType: string, received: readonly ReceivedMessage[]): Promise<ReadonlyMap<string, PairingRow>> {
    const senderIds = new Set(received.flatMap(({ conversationKind, senderId }) => (conversationKind === 'direct' ? [senderId] : [])));
    if (senderIds.size === 0) return new Map();
    const rows = await db.read(findPairings, { instance, channelType, senderIds: [...senderIds] });
    return new Map(rows.map((row) => [row.senderId, row]));
  }

  return async (instance: string, config: InstanceConfig, received: readonly ReceivedMessage[]): Promise<Stored> => {
    const [pairings, choices] = [await pairingsOf(instance, config.type, received), await choicesOf(instance, config, received)];
    const [joined, botTurns] = [await joinedOf(instance, config, received), await botTurnsOf(instance, config, received)];
    return {
      choices,
      known: ({ conversationKind, conversationId, threadId = null, senderId }) => ({
        pairing: conversationKind === 'direct' ? pairings.get(senderId) : undefined,
        isJoined: joined.has(placeKey({ conversationId, threadId })),
        botTurns: botTurns.get(conversationId) ?? 0,
      }),
      answered({ conversationId, threadId = null, isBot }) {
        if (config.groups.stickyThreads && threadId !== null) joined.add(placeKey({ conversationId, threadId }));
        if (config.bots !== 'off') botTurns.set(conversationId, isBot ? (botTurns.get(conversationId) ?? 0) + 1 : 0);
      },
    };
  };
}
