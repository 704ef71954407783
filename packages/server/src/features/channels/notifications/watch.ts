import type { AgentNotification, MessageStatus } from '@gatehouse/contract';
import type { Core } from '../../../kernel/core.ts';
import type { NotificationRow } from './api.ts';
import { type NextWithin, quietUntil } from './quiet-hours.ts';
import { endNotification, readOpen, releaseNotification } from './store.ts';

export interface WatchDeps extends Core {
  /** Returns what the outbox knows of a message. */
  readonly readSent: (opKey: string) => Promise<{ readonly status: MessageStatus; readonly messageId: string | null }>;
  readonly wake: (instance: string) => void;
  /** The configuration of an agent now; undefined when it is gone. */
  readonly configOf: (agentId: string) => AgentNotification | undefined;
  readonly nextWithin: NextWithin;
}

/** Time in which a notification is worth sending. */
export const lifeMs = 60 * 60_000;
/** Held ones are checked at least this often: their hours may be changed. */
const checkMs = 60_000;

/** Follows notifications until they have ended: releases held ones at the end of quiet hours, and announces those that were delivered. */
export class NotificationWatch implements Disposable {
  readonly #deps: WatchDeps;
  /** Sent ones by their first part in the outbox, without its number. */
  readonly #open = new Map<string, NotificationRow>();
  readonly #held = new Map<string, NotificationRow>();
  readonly #stop: () => void;
  #cancel = () => {};
  #isEnded = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#stop = deps.bus.listen(['channel:delivery'], ({ payload }) => {
      const row = 'deliveryId' in payload && this.#open.get(baseOf(payload.deliveryId));
      if (row) this.#run(this.#settle(row), row);
    });
  }

  /** Takes over what earlier runs of the daemon left. */
  async start(): Promise<void> {
    for (const row of await this.#deps.db.read(readOpen, undefined)) this.add(row);
    this.#check();
  }

  add(row: NotificationRow): void {
    if (row.state === 'held') {
      this.#held.set(row.id, row);
      this.#arm(this.#deps.clock.now());
    } else {
      this.#open.set(baseOf(row.entryId), row);
      this.#run(this.#settle(row), row);
    }
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#stop();
    this.#cancel();
  }

  #run(work: Promise<void>, { id }: NotificationRow): void {
    work.catch((error: unknown) => {
      if (!this.#isEnded) this.#deps.log.warn({ err: error, notificationId: id }, 'Failed to follow a notification');
    });
  }

  #untilOf({ agentId, priority }: NotificationRow, atMs: number): number | undefined {
    const config = this.#deps.configOf(agentId);
    // Of an agent that was deleted nothing is sent any more.
    return config === undefined ? Number.POSITIVE_INFINITY : quietUntil(config, priority, atMs, this.#deps.nextWithin);
  }

  /** Checks again at the end of the first quiet hours, and now and then. */
  #arm(atMs: number): void {
    this.#cancel();
    if (this.#isEnded || this.#held.size === 0) return;
    const waits = [...this.#held.values()].map((row) => (this.#untilOf(row, atMs) ?? atMs) - atMs);
    this.#cancel = this.#deps.clock.after(Math.max(1, Math.min(checkMs, ...waits)), () => this.#check());
  }

  #check(): void {
    const atMs = this.#deps.clock.now();
    for (const row of this.#held.values()) if (this.#untilOf(row, atMs) === undefined) this.#run(this.#release(row, atMs), row);
    this.#arm(atMs);
  }

  async #release(row: NotificationRow, atMs: number): Promise<void> {
    const { id, opKey, instance } = row;
    this.#held.delete(id);
    try {
      if (!(await this.#deps.db.write(releaseNotification, { id, opKey, atMs, expiresAtMs: atMs + lifeMs }))) return;
    } catch (error) {
      this.#held.set(id, row);
      this.#arm(atMs);
      throw error;
    }
    this.add({ ...row, state: 'open' });
    this.#deps.wake(instance);
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
