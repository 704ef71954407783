import { AppError } from './app-error.ts';
import { createFifo, type Fifo } from './fifo.ts';

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

/** An entry that would wait longer than this, and longer than half a holder's time, is refused at once and can go elsewhere. */
const longestWaitMs = 1_000;
/** This few entries ahead are not an overload, however long they take. */
const shortQueue = 16;
/** Number of holders in the moving average of their times. */
const holdersInMean = 16;
/** Idle groups whose times are remembered. */
const maxIdleGroups = 1_000;

interface Waiter {
  readonly entry: LaneEntry;
  readonly grant: (group: Group) => void;
  /** Leaves the queue that the waiter is in now. */
  leave: () => void;
}

/** Exists while a key has a head or is reserved for one; `queue` holds the entries behind it. */
interface Lane {
  /** An entry holds the lane, or is next in it and waits for capacity in the group. */
  hasHead: boolean;
  running: boolean;
  kept: number;
  /** Each rejects an entry that yields. */
  readonly yielding: Set<() => void>;
  readonly queue: Fifo<Waiter>;
}

interface Group {
  readonly id: string;
  running: number;
  limit: number;
  /** Entries waiting for the group, all principals together. */
  waiting: number;
  readonly beganMs: number;
  /** Moving average of holders' times; undefined until one has finished. */
  meanMs: number | undefined;
  /** Principals that have waiting entries, the next one to be served first. */
  readonly ring: Fifo<Principal>;
  readonly principals: Map<string, Principal>;
}

interface Principal {
  readonly id: string;
  readonly waiting: Fifo<Waiter>;
  leaveRing: () => void;
}

/** Order per conversation, a limit per agent, fairness between principals, no futile wait. All operations are O(1); idle keys cost nothing. */
export function createLanes(options: LanesOptions = {}): Lanes {
  const { maxQueuedPerLane = 50, maxQueued = 1000, retryAfterMs = 1000, monotonic = () => 0 } = options;
  const lanes = new Map<string, Lane>();
  const groups = new Map<string, Group>();
  const maxQueuedPerPrincipal = Math.ceil(maxQueued / 2);
  /** Number of waiting entries by principal, in all groups; principals without one are absent. */
  const queuedOf = new Map<string, number>();
  let running = 0;
  let queued = 0;

  function countQueued(principalId: string, change: 1 | -1): void {
    queued += change;
    const left = (queuedOf.get(principalId) ?? 0) + change;
    if (left === 0) queuedOf.delete(principalId);
    else queuedOf.set(principalId, left);
  }

  function groupOf(entry: LaneEntry): Group {
    let group = groups.get(entry.group);
    if (group === undefined) {
      group = {
        id: entry.group,
        running: 0,
        limit: entry.groupLimit,
        waiting: 0,
        beganMs: monotonic(),
        meanMs: undefined,
        ring: createFifo(),
        principals: new Map(),
      };
      groups.set(entry.group, group);
    }
    group.limit = entry.groupLimit;
    return group;
  }

  function openLane(key: string): Lane {
    const lane: Lane = { hasHead: false, running: false, kept: 0, yielding: new Set(), queue: createFifo() };
    lanes.set(key, lane);
    return lane;
  }

  function startIn(group: Group, lane: Lane, entry: LaneEntry): Lease {
    lane.hasHead = true;
    lane.running = true;
    group.running += 1;
    running += 1;
    const sinceMs = monotonic();
    return new HeldLease(() => {
      const heldMs = monotonic() - sinceMs;
      group.meanMs = group.meanMs === undefined ? heldMs : group.meanMs + (heldMs - group.meanMs) / holdersInMean;
      group.running -= 1;
      running -= 1;
      advanceLane(entry.key);
      fillGroup(group);
    });
  }

  /** Called when the head of the lane is gone: the next entry starts to wait for its group. */
  function advanceLane(key: string): void {
    const lane = lanes.get(key);
    if (lane === undefined) return;
    lane.hasHead = false;
    lane.running = false;
    if (lane.kept > 0) return;
    const next = lane.queue.shift();
    if (next === undefined) {
      lanes.delete(key);
      return;
    }
    lane.hasHead = true;
    const group = groupOf(next.entry);
    standInGroup(group, next);
    fillGroup(group);
  }

  function standInGroup(group: Group, waiter: Waiter): void {
    const id = waiter.entry.principalId;
    let principal = group.principals.get(id);
    if (principal === undefined) {
      principal = { id, waiting: createFifo(), leaveRing: () => {} };
      principal.leaveRing = group.ring.push(principal);
      group.principals.set(id, principal);
    }
    const from = principal;
    const leaveQueue = from.waiting.push(waiter);
    group.waiting += 1;
    waiter.leave = () => {
      leaveQueue();
      group.waiting -= 1;
      if (from.waiting.size === 0) {
        from.leaveRing();
        group.principals.delete(id);
      }
      advanceLane(waiter.entry.key);
      fillGroup(group);
    };
  }

  /** Admits entries while the group has capacity, one of each principal in turn; forgets an idle group when there are many. */
  function fillGroup(group: Group): void {
    while (group.running < group.limit) {
      const principal = group.ring.shift();
      const waiter = principal?.waiting.shift();
      if (principal === undefined || waiter === undefined) break;
      if (principal.waiting.size > 0) principal.leaveRing = group.ring.push(principal);
      else group.principals.delete(principal.id);
      group.waiting -= 1;
      waiter.grant(group);
    }
    if (group.running === 0 && group.principals.size === 0 && groups.size > maxIdleGroups) groups.delete(group.id);
  }

  function refuseWhenFull(lane: Lane | undefined, principalId: string): void {
    if (lane !== undefined && lane.queue.size >= maxQueuedPerLane) {
      throw new LaneFullError('lane', 'rate_limited', `Too many turns wait in this conversation (limit ${maxQueuedPerLane})`, retryAfterMs);
    }
    if (queued >= maxQueued) throw new LaneFullError('group', 'unavailable', `Too many turns wait (limit ${maxQueued})`, retryAfterMs);
    if ((queuedOf.get(principalId) ?? 0) >= maxQueuedPerPrincipal) {
      throw new LaneFullError('group', 'rate_limited', `Too many turns of this caller wait (limit ${maxQueuedPerPrincipal})`, retryAfterMs);
    }
  }

  /** Entries of one principal wait for each other and for as many of each other principal. */
  function refuseWhenLate(group: Group, principalId: string): void {
    const own = group.principals.get(principalId);
    const principals = group.principals.size + (own === undefined ? 1 : 0);
    const place = Math.min(group.waiting + 1, ((own?.waiting.size ?? 0) + 1) * principals);
    if (place <= shortQueue) return;
    const heldMs = group.meanMs ?? monotonic() - group.beganMs;
    const waitMs = (place * heldMs) / group.limit;
    if (waitMs <= Math.max(longestWaitMs, heldMs / 2)) return;
    throw new LaneFullError('group', 'unavailable', 'More turns wait for this agent than it can run in time', waitMs);
  }

  return {
    counts: () => ({ running, queued }),
    of(key) {
      const lane = lanes.get(key);
      if (lane === undefined) return { running: false, queued: 0 };
      return { running: lane.running || lane.kept > 0, queued: lane.queue.size + (lane.hasHead && !lane.running ? 1 : 0) };
    },
    ofGroup(id) {
      const group = groups.get(id);
      return { running: group?.running ?? 0, queued: group?.waiting ?? 0 };
    },
    keep(key) {
      const lane = lanes.get(key) ?? openLane(key);
      lane.kept += 1;
      for (const turnAway of lane.yielding) turnAway();
    },
    isKept: (key) => (lanes.get(key)?.kept ?? 0) > 0,
    unkeep(key) {
      const lane = lanes.get(key);
      if (lane === undefined || lane.kept === 0) return;
      lane.kept -= 1;
      if (!lane.hasHead) advanceLane(key);
    },
    async acquire(entry) {
      if (entry.signal.aborted) throw new AppError('cancelled', 'Aborted before the turn began');
      const lane = lanes.get(entry.key);
      if (entry.yields === true && entry.continues !== true && lane !== undefined && lane.kept > 0) throw new LaneKeptError();
      const isNext = lane === undefined || (entry.continues === true && !lane.hasHead);
      if (isNext) {
        const group = groupOf(entry);
        // The limit may have been raised since the waiting entries were refused.
        if (group.ring.size > 0) fillGroup(group);
        if (group.running < group.limit) {
          return startIn(group, lane ?? openLane(entry.key), entry);
        }
      }
      if (entry.continues !== true) {
        refuseWhenFull(lane, entry.principalId);
        if (isNext) refuseWhenLate(groupOf(entry), entry.principalId);
      }
      countQueued(entry.principalId, 1);
      return new Promise<Lease>((resolve, reject) => {
        const leave = (error: Error) => {
          entry.signal.removeEventListener('abort', onAbort);
          lane?.yielding.delete(turnAway);
          countQueued(entry.principalId, -1);
          waiter.leave();
          reject(error);
        };
        const onAbort = () => leave(new AppError('cancelled', 'Aborted while waiting for its turn'));
        const turnAway = () => leave(new LaneKeptError());
        const waiter: Waiter = {
          entry,
          leave: () => {},
          grant: (granting) => {
            countQueued(entry.principalId, -1);
            entry.signal.removeEventListener('abort', onAbort);
            lane?.yielding.delete(turnAway);
            resolve(startIn(granting, lanes.get(entry.key) ?? openLane(entry.key), entry));
          },
        };
        entry.signal.addEventListener('abort', onAbort, { once: true });
        if (isNext) {
          (lane ?? openLane(entry.key)).hasHead = true;
          standInGroup(groupOf(entry), waiter);
        } else {
          waiter.leave = lane.queue.push(waiter);
          if (entry.yields === true) lane.yielding.add(turnAway);
        }
      });
    },
  };
}
