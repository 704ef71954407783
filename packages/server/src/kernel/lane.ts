import { AppError } from './app-error.ts';
import { createFifo, type Fifo } from './fifo.ts';
import { LaneGroup, type Waiter } from './lane-group.ts';

export interface LaneEntry {
  /** What must not overlap: one conversation. Holders of one key run one after the other, in order of arrival. */
  readonly key: string;
  /** What shares a limit: one agent. */
  readonly group: string;
  /** Concurrent holders of the group; the limit of the latest entry applies. */
  readonly groupLimit: number;
  /** Full groups serve principals in turn. */
  readonly principalId: string;
  /** Fails the wait with `cancelled`; has no effect on a holder. */
  readonly signal: AbortSignal;
  /** Continues the work that the lane is reserved for: enters before waiting entries and is never refused. */
  readonly continues?: boolean;
  /** Does not wait while the lane is reserved: it fails with `LaneKeptError`, also when that happens while it waits. */
  readonly yields?: boolean;
}

/** The lane is reserved for a holder that returns (`LaneEntry.yields`). */
export class LaneKeptError extends Error {}

/** The queue of the lane or of the group is full. */
export class LaneFullError extends AppError {
  readonly full: 'lane' | 'group';

  constructor(full: 'lane' | 'group', code: 'rate_limited' | 'unavailable', message: string, retryAfterMs: number) {
    super(code, message, { retryAfterMs });
    this.full = full;
  }
}

/** Permission to run; `release` may be called more than once. */
export interface Lease extends Disposable {
  release(): void;
}

class HeldLease implements Lease {
  #end: (() => void) | undefined;

  constructor(end: () => void) {
    this.#end = end;
  }

  release(): void {
    const end = this.#end;
    this.#end = undefined;
    end?.();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

export interface Lanes {
  /**
   * Waits for the lane and for capacity in the group. Fails with a `LaneFullError`: `rate_limited` when the lane's queue is full or the
   * principal has too many waiting entries, `unavailable` when too many wait in all or the wait would be too long. Fails with
   * `cancelled` when the signal aborts first.
   */
  acquire(entry: LaneEntry): Promise<Lease>;
  /** Reserves a lane for a holder that leaves and returns (`continues`): others queue until `unkeep` was called as often. */
  keep(key: string): void;
  isKept(key: string): boolean;
  unkeep(key: string): void;
  counts(): { readonly running: number; readonly queued: number };
  /** Whether an entry runs in one lane, and how many wait behind it. */
  of(key: string): { readonly running: boolean; readonly queued: number };
  /** Holders of one group, and entries waiting for one of its slots. */
  ofGroup(group: string): { readonly running: number; readonly queued: number };
}

export interface LanesOptions {
  /** Entries that may wait behind the holder of one key. */
  readonly maxQueuedPerLane?: number;
  /** Entries that may wait in all; those of one principal are at most half of them. */
  readonly maxQueued?: number;
  /** How long a refused caller should wait. */
  readonly retryAfterMs?: number;
  /** Used to measure how long holders run, so that entries with too long a wait are refused; without it only their number is limited. */
  readonly monotonic?: () => number;
}

/** Idle groups whose times are remembered. */
const maxIdleGroups = 1_000;

/** Exists while a key has a head or is reserved for one; `queue` holds the entries behind it. */
interface Lane {
  /** An entry holds the lane, or is next in it and waits for capacity in the group. */
  hasHead: boolean;
  running: boolean;
  kept: number;
  /** Each rejects an entry that yields; most lanes never have one. */
  yielding: Set<() => void> | undefined;
  readonly queue: Fifo<Queued>;
}

interface Queued extends Waiter {
  readonly entry: LaneEntry;
}

/** Order per conversation, a limit per agent, fairness between principals, no futile wait. All operations are O(1); idle keys cost nothing. */
export function createLanes(options: LanesOptions = {}): Lanes {
  return new LaneTable(options);
}

class LaneTable implements Lanes {
  readonly #options: Required<LanesOptions>;
  readonly #lanes = new Map<string, Lane>();
  readonly #groups = new Map<string, LaneGroup>();
  /** Number of waiting entries by principal, in all groups; principals without one are absent. */
  readonly #queuedOf = new Map<string, number>();
  #running = 0;
  #queued = 0;

  constructor({ maxQueuedPerLane = 50, maxQueued = 1000, retryAfterMs = 1000, monotonic = () => 0 }: LanesOptions) {
    this.#options = { maxQueuedPerLane, maxQueued, retryAfterMs, monotonic };
  }

  counts(): { readonly running: number; readonly queued: number } {
    return { running: this.#running, queued: this.#queued };
  }

  of(key: string): { readonly running: boolean; readonly queued: number } {
    const lane = this.#lanes.get(key);
    if (lane === undefined) return { running: false, queued: 0 };
    return { running: lane.running || lane.kept > 0, queued: lane.queue.size + (lane.hasHead && !lane.running ? 1 : 0) };
  }

  ofGroup(id: string): { readonly running: number; readonly queued: number } {
    const group = this.#groups.get(id);
    return { running: group?.running ?? 0, queued: group?.waiting ?? 0 };
  }

  keep(key: string): void {
    const lane = this.#lanes.get(key) ?? this.#openLane(key);
    lane.kept += 1;
    for (const turnAway of lane.yielding ?? []) turnAway();
  }

  isKept(key: string): boolean {
    return (this.#lanes.get(key)?.kept ?? 0) > 0;
  }

  unkeep(key: string): void {
    const lane = this.#lanes.get(key);
    if (lane === undefined || lane.kept === 0) return;
    lane.kept -= 1;
    if (!lane.hasHead) this.#advance(key);
  }

  async acquire(entry: LaneEntry): Promise<Lease> {
    if (entry.signal.aborted) throw new AppError('cancelled', 'Aborted before the turn began');
    const lane = this.#lanes.get(entry.key);
    if (entry.yields === true && entry.continues !== true && lane !== undefined && lane.kept > 0) throw new LaneKeptError();
    const isNext = lane === undefined || (entry.continues === true && !lane.hasHead);
    if (isNext) {
      const group = this.#groupOf(entry);
      // The limit may have been raised since the waiting entries were refused.
      if (group.hasWaiting) this.#fill(group);
      if (group.hasSlot) return this.#start(group, lane ?? this.#openLane(entry.key), entry);
    }
    if (entry.continues !== true) {
      this.#refuseWhenFull(lane, entry.principalId);
      if (isNext) this.#refuseWhenLate(this.#groupOf(entry), entry.principalId);
    }
    return this.#wait(entry, isNext ? undefined : lane);
  }

  /** Waits behind the holder of a lane; without one, as the head of the lane, for a slot of its group. */
  #wait(entry: LaneEntry, behind: Lane | undefined): Promise<Lease> {
    this.#countQueued(entry.principalId, 1);
    const { promise, resolve, reject } = Promise.withResolvers<Lease>();
    const settle = () => {
      this.#countQueued(entry.principalId, -1);
      entry.signal.removeEventListener('abort', onAbort);
      behind?.yielding?.delete(turnAway);
    };
    const leave = (error: Error) => {
      settle();
      waiter.leave();
      reject(error);
    };
    const onAbort = () => leave(new AppError('cancelled', 'Aborted while waiting for its turn'));
    const turnAway = () => leave(new LaneKeptError());
    const waiter: Queued = {
      entry,
      principalId: entry.principalId,
      leave: () => {},
      grant: (group) => {
        settle();
        resolve(this.#start(group, this.#lanes.get(entry.key) ?? this.#openLane(entry.key), entry));
      },
    };
    entry.signal.addEventListener('abort', onAbort, { once: true });
    if (behind === undefined) {
      (this.#lanes.get(entry.key) ?? this.#openLane(entry.key)).hasHead = true;
      this.#queueInGroup(waiter);
    } else {
      waiter.leave = behind.queue.push(waiter);
      if (entry.yields === true) (behind.yielding ??= new Set()).add(turnAway);
    }
    return promise;
  }

  #start(group: LaneGroup, lane: Lane, entry: LaneEntry): Lease {
    lane.hasHead = true;
    lane.running = true;
    group.enter();
    this.#running += 1;
    const { monotonic } = this.#options;
    const sinceMs = monotonic();
    return new HeldLease(() => {
      group.left(monotonic() - sinceMs);
      this.#running -= 1;
      this.#advance(entry.key);
      this.#fill(group);
    });
  }

  /** Called when the head of the lane is gone: the next entry starts to wait for its group. */
  #advance(key: string): void {
    const lane = this.#lanes.get(key);
    if (lane === undefined) return;
    lane.hasHead = false;
    lane.running = false;
    if (lane.kept > 0) return;
    const next = lane.queue.shift();
    if (next === undefined) {
      this.#lanes.delete(key);
      return;
    }
    lane.hasHead = true;
    this.#fill(this.#queueInGroup(next));
  }

  #queueInGroup(waiter: Queued): LaneGroup {
    const group = this.#groupOf(waiter.entry);
    group.queue(waiter, () => {
      this.#advance(waiter.entry.key);
      this.#fill(group);
    });
    return group;
  }

  /** Admits waiting entries of a group; forgets an idle group when there are many. */
  #fill(group: LaneGroup): void {
    group.fill();
    if (group.isIdle && this.#groups.size > maxIdleGroups) this.#groups.delete(group.id);
  }

  #openLane(key: string): Lane {
    const lane: Lane = { hasHead: false, running: false, kept: 0, yielding: undefined, queue: createFifo() };
    this.#lanes.set(key, lane);
    return lane;
  }

  #groupOf({ group: id, groupLimit }: LaneEntry): LaneGroup {
    let group = this.#groups.get(id);
    if (group === undefined) {
      group = new LaneGroup(id, groupLimit, this.#options.monotonic());
      this.#groups.set(id, group);
    }
    group.limit = groupLimit;
    return group;
  }

  #countQueued(principalId: string, change: 1 | -1): void {
    this.#queued += change;
    const left = (this.#queuedOf.get(principalId) ?? 0) + change;
    if (left === 0) this.#queuedOf.delete(principalId);
    else this.#queuedOf.set(principalId, left);
  }

  #refuseWhenFull(lane: Lane | undefined, principalId: string): void {
    const { maxQueuedPerLane, maxQueued, retryAfterMs } = this.#options;
    if (lane !== undefined && lane.queue.size >= maxQueuedPerLane)
      throw new LaneFullError('lane', 'rate_limited', `Too many turns wait in this conversation (limit ${maxQueuedPerLane})`, retryAfterMs);
    if (this.#queued >= maxQueued) throw new LaneFullError('group', 'unavailable', `Too many turns wait (limit ${maxQueued})`, retryAfterMs);
    const maxOfPrincipal = Math.ceil(maxQueued / 2);
    if ((this.#queuedOf.get(principalId) ?? 0) >= maxOfPrincipal)
      throw new LaneFullError('group', 'rate_limited', `Too many turns of this caller wait (limit ${maxOfPrincipal})`, retryAfterMs);
  }

  #refuseWhenLate(group: LaneGroup, principalId: string): void {
    const waitMs = group.excessiveWaitMs(principalId, this.#options.monotonic());
    if (waitMs !== undefined) throw new LaneFullError('group', 'unavailable', 'More turns wait for this agent than it can run in time', waitMs);
  }
}
