import type { BusEvent } from '../../../../../kernel/event-bus.ts';
import type { Core } from '../../../../../kernel/core.ts';
import { type Channel, channelOf } from '../../../../../kernel/gateway-channel.ts';
import type { Live } from '../../../../../kernel/config/live.ts';
import { type ActivityRow, addActivity, clearActivity, readActivity } from './activity-store.ts';

const flushMs = 5_000;
const dayMs = 86_400_000;
/** Channels whose counts wait to be stored; beyond, further channels are not counted until the next write. */
const maxWaiting = 4_096;

export interface ChannelCounts extends Channel {
  readonly lastActiveAt: number;
  readonly messagesSent: number;
  readonly messagesReceived: number;
}

export interface ActivityDeps extends Core {
  readonly retentionDays: Pick<Live<number>, 'current'>;
}

type Direction = 'messagesSent' | 'messagesReceived';

/**
 * Counts the messages of each channel: clients of the gateway, webhooks by mapping, and the inbox. Counts are written a few seconds later; a crash
 * loses those seconds.
 */
export class ChannelActivity implements AsyncDisposable {
  readonly #deps: ActivityDeps;
  readonly #stop: () => void;
  #waiting = new Map<string, ActivityRow>();
  #writing: Promise<void> | undefined;
  #cancelFlush: (() => void) | undefined;
  #failing = false;
  #writes = 0;

  constructor(deps: ActivityDeps) {
    this.#deps = deps;
    this.#stop = deps.bus.listen(['message:received', 'message:sent', 'webhook:delivery', 'inbox:message'], (event) => this.#hear(event));
  }

  /** Returns the channels with messages of these agents, or of all, the most recently active first. */
  async read(agentIds: readonly string[] | null): Promise<ChannelCounts[]> {
    const sums = new Map<string, ChannelCounts>();
    for (const row of [...(await this.#stored()), ...this.#waiting.values()]) {
      if (agentIds?.includes(row.agentId) === false) continue;
      const { channelType, channelId, lastActiveAtMs, messagesSent, messagesReceived } = row;
      const key = JSON.stringify([channelType, channelId]);
      const sum = sums.get(key);
      sums.set(key, {
        channelType,
        channelId,
        lastActiveAt: Math.max(sum?.lastActiveAt ?? 0, lastActiveAtMs),
        messagesSent: (sum?.messagesSent ?? 0) + messagesSent,
        messagesReceived: (sum?.messagesReceived ?? 0) + messagesReceived,
      });
    }
    return [...sums.values()].toSorted((a, b) => b.lastActiveAt - a.lastActiveAt);
  }

  /** Forgets everything; returns how many rows there were. */
  async clear(): Promise<number> {
    await this.flush();
    this.#waiting.clear();
    return this.#deps.db.telemetry(clearActivity, {});
  }

  /** Resolves when everything that was counted before is stored, or cannot be. */
  flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.flush();
    this.#cancelFlush?.();
  }

  /** Rows without what waits; read again when a write moved some meanwhile. */
  async #stored(): Promise<readonly ActivityRow[]> {
    for (;;) {
      await this.flush();
      const writes = this.#writes;
      const rows = await this.#deps.db.read(readActivity, {});
      if (writes === this.#writes) return rows;
    }
  }

  #hear({ kind, payload }: BusEvent): void {
    if (kind === 'inbox:message') return this.#count({ channelType: 'gateway', channelId: 'inbox' }, payload, 'messagesSent');
    if (kind === 'webhook:delivery') {
      const isNew = 'received' in payload && payload.received === true;
      return isNew ? this.#count({ channelType: 'webhook', channelId: payload.mapping }, payload, 'messagesReceived') : undefined;
    }
    if (!('origin' in payload) || !('sessionKey' in payload)) return;
    const channel = channelOf(payload.origin, payload.sessionKey);
    if (channel !== undefined) this.#count(channel, payload, kind === 'message:sent' ? 'messagesSent' : 'messagesReceived');
  }

  #count({ channelType, channelId }: Channel, about: BusEvent['payload'], direction: Direction): void {
    const agentId = ('agentId' in about ? about.agentId : undefined) ?? '';
    const key = JSON.stringify([channelType, channelId, agentId]);
    const counted = this.#waiting.get(key);
    if (counted === undefined && this.#waiting.size >= maxWaiting) return;
    const { messagesSent = 0, messagesReceived = 0 } = counted ?? {};
    const row = { channelType, channelId, agentId, lastActiveAtMs: this.#deps.clock.now(), messagesSent, messagesReceived };
    this.#waiting.set(key, { ...row, [direction]: row[direction] + 1 });
    this.#flushLater();
  }

  #flushLater(): void {
    this.#cancelFlush ??= this.#deps.clock.after(flushMs, () => void this.flush());
  }

  async #write(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const { db, clock, log, retentionDays } = this.#deps;
    const rows = this.#waiting;
    this.#writes += 1;
    this.#waiting = new Map();
    try {
      await db.telemetry(addActivity, { rows: [...rows.values()], beforeMs: clock.ageNow() - retentionDays.current * dayMs });
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.warn({ err: error }, 'Failed to store the activity of channels; it is tried again');
      this.#failing = true;
      for (const [key, row] of this.#waiting) rows.set(key, added(rows.get(key), row));
      this.#waiting = rows;
      this.#flushLater();
    }
  }
}

function added(before: ActivityRow | undefined, row: ActivityRow): ActivityRow {
  if (before === undefined) return row;
  return {
    ...row,
    messagesSent: before.messagesSent + row.messagesSent,
    messagesReceived: before.messagesReceived + row.messagesReceived,
  };
}
