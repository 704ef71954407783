import type { Transactions, WriteUnit } from './transaction.ts';

/** Units per commit: more would only delay the first of them, and meet more of what others change. */
const maxBatch = 128;

interface Entry {
  readonly unit: WriteUnit;
  readonly key: string | undefined;
  readonly settle: (result: unknown) => void;
}

interface Lane {
  readonly transactions: Transactions;
  queue: Entry[];
  busy: boolean;
}

/**
 * Distributes writes over several connections. Two writes are applied in the order of their calls unless both name a key and the keys
 * differ. While every waiting write has a key, each lane takes those of its keys; a write without a key waits until all lanes are done,
 * and what waits behind it then runs in order on one lane.
 */
export interface Lanes {
  add(unit: WriteUnit): Promise<unknown>;
  /** Resolves when nothing waits any more. */
  idle(): Promise<void>;
}

export function createLanes(connections: readonly Transactions[]): Lanes {
  const lanes: Lane[] = connections.map((transactions) => ({ transactions, queue: [], busy: false }));
  /** Holds the first write without a key, and what came after it. */
  let behind: Entry[] = [];
  let unkeyed = 0;
  let exclusive = false;
  let awaited = 0;
  let onIdle: (() => void)[] = [];

  function enter(entry: Entry): void {
    if (behind.length === 0 && !exclusive && entry.key !== undefined) laneOf(entry.key).queue.push(entry);
    else {
      behind.push(entry);
      if (entry.key === undefined) unkeyed += 1;
    }
  }

  function laneOf(key: string): Lane {
    let hash = 0;
    for (let index = 0; index < key.length; index++) hash = (Math.imul(hash, 31) + key.charCodeAt(index)) | 0;
    return lanes[Math.abs(hash) % lanes.length] as Lane;
  }

  function dispatch(): void {
    if (exclusive) return;
    for (const lane of lanes) if (!lane.busy && lane.queue.length > 0) void serve(lane, lane.queue.splice(0, maxBatch));
    if (behind.length === 0 || lanes.some(({ busy }) => busy)) return;
    if (unkeyed === 0) {
      const released = behind;
      behind = [];
      for (const entry of released) enter(entry);
      return dispatch();
    }
    const batch = behind.splice(0, maxBatch);
    for (const { key } of batch) if (key === undefined) unkeyed -= 1;
    exclusive = true;
    void serve(lanes[0] as Lane, batch);
  }

  async function serve(lane: Lane, entries: readonly Entry[]): Promise<void> {
    lane.busy = true;
    const results = await lane.transactions.run(entries.map(({ unit }) => unit));
    for (const [index, { settle }] of entries.entries()) settle(results[index]);
    lane.busy = false;
    awaited -= entries.length;
    // Nothing else ran while it did.
    exclusive = false;
    dispatch();
    if (awaited > 0) return;
    const listeners = onIdle;
    onIdle = [];
    for (const listener of listeners) listener();
  }

  let isScheduled = false;
  return {
    add(unit) {
      awaited += 1;
      return new Promise((settle) => {
        enter({ unit, key: unit.operation.orderKey?.(unit.input as never), settle });
        if (isScheduled) return;
        isScheduled = true;
        // All writes of a message are there before the first transaction takes its share.
        queueMicrotask(() => {
          isScheduled = false;
          dispatch();
        });
      });
    },
    idle: () => (awaited === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
  };
}
