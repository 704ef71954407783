import type { MessageStatus } from '@gatehouse/contract';
import type { Core } from '../../../kernel/core.ts';
import type { NotificationRow } from './api.ts';
import { endNotification, readOpen } from './store.ts';

export interface WatchDeps extends Core {
  /** Returns what the outbox knows of a message. */
  readonly readSent: (opKey: string) => Promise<{ readonly status: MessageStatus; readonly messageId: string | null }>;
}

/** Time in which a notification is worth sending. */
export const lifeMs = 60 * 60_000;

/** Follows notifications until they have ended, and announces those that were delivered. */
export class NotificationWatch implements Disposable {
  readonly #deps: WatchDeps;
  /** Open ones by their first part in the outbox, without its number. */
  readonly #open = new Map<string, NotificationRow>();
  readonly #stop: () => void;
  #isEnded = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#stop = deps.bus.listen(['channel:delivery'], ({ payload }) => {
      const row = 'deliveryId' in payload && this.#open.get(baseOf(payload.deliveryId));
      if (row) this.#follow(row);
    });
  }

  /** Takes over what earlier runs of the daemon left. */
  async start(): Promise<void> {
    for (const row of await this.#deps.db.read(readOpen, undefined)) this.add(row);
  }

  add(row: NotificationRow): void {
    this.#open.set(baseOf(row.entryId), row);
    this.#follow(row);
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#stop();
  }

  #follow(row: NotificationRow): void {
    this.#settle(row).catch((error: unknown) => {
      if (!this.#isEnded) this.#deps.log.warn({ err: error, notificationId: row.id }, 'Failed to follow a notification');
    });
  }

  /** Ends a notification when the outbox has ended it; one that may have been sent waits for the decision about it. */
  async #settle(row: NotificationRow): Promise<void> {
    const { db, bus, clock, readSent } = this.#deps;
    const { status, messageId } = await readSent(row.opKey);
    if (status === 'pending' || status === 'unknown') return;
    const { id, entryId, agentId, principalId, priority, channelType, conversationId, createdAtMs } = row;
    const atMs = clock.now();
    const isDelivered = status === 'accepted';
    this.#open.delete(baseOf(entryId));
    if (!(await db.write(endNotification, { id, state: isDelivered ? 'delivered' : 'failed', atMs })) || !isDelivered) return;
    const durationMs = Math.max(0, atMs - createdAtMs);
    bus.emit(
      'notification:delivered',
      { agentId, priority, channelType, channelId: conversationId, entryId, messageId, durationMs, timestamp: atMs },
      principalId,
    );
  }
}

const baseOf = (deliveryId: string): string => deliveryId.replace(/-\d+$/, '');
