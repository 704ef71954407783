import { AppError } from './app-error.ts';
import { createFifo, type Fifo } from './fifo.ts';

export interface LaneEntry {
  /** What must not overlap: one conversation. Holders of one key come one after the other, in order of arrival. */
  readonly key: string;
  /** What shares a limit: one agent. */
  readonly group: string;
  /** Holders of the group at once; the limit of the latest entry holds. */
  readonly groupLimit: number;
  /** For whom: groups that are full serve principals in turn. */
  readonly principalId: string;
  /** Ends the wait with `cancelled`; has no effect on a holder. */
  readonly signal: AbortSignal;
  /** Continues what the lane is kept for: enters before those that wait, and is never refused. */
  readonly continues?: boolean;
  /** Does not wait while the lane is kept for somebody: it fails with `LaneKeptError`, also when that begins while it waits. */
  readonly yields?: boolean;
}

/** The lane is kept for somebody who comes back (`LaneEntry.yields`). */
export class LaneKeptError extends Error {}

/** There is no room to wait in the queue of the lane, or for the group. */
export class LaneFullError extends AppError {
  readonly full: 'lane' | 'group';

  constructor(full: 'lane' | 'group', code: 'rate_limited' | 'unavailable', message: string, retryAfterMs: number) {
    super(code, message, { retryAfterMs });
    this.full = full;
  }
}

/** The right to run; `release` may be called more than once. */
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
   * Waits for the lane and for room in the group. Fails with a `LaneFullError`: `rate_limited` when the lane's queue is full or the
   * principal has too many that wait, `unavailable` when too many wait in all or the group would come too late. Fails with `cancelled`
   * when the signal aborts first.
   */
  acquire(entry: LaneEntry): Promise<Lease>;
  /** Keeps a lane for a holder that leaves and comes back (`continues`): others wait in its queue until as many calls of `unkeep`. */
  keep(key: string): void;
  isKept(key: string): boolean;
  unkeep(key: string): void;
  counts(): { readonly running: number; readonly queued: number };
  /** Whether something runs in one lane, and how many entries wait behind it. */
  of(key: string): { readonly running: boolean; readonly queued: number };
  /** Holders of one group, and entries that wait for a place among them. */
  ofGroup(group: string): { readonly running: number; readonly queued: number };
}

export interface LanesOptions {
  /** Entries that may wait behind the holder of one key. */
  readonly maxQueuedPerLane?: number;
  /** Entries that may wait in all; those of one principal are at most half of them. */
  readonly maxQueued?: number;
  /** What a refused caller is told to wait. */
  readonly retryAfterMs?: number;
  /** Tells how long holders take, in milliseconds, so that nobody waits who would come too late; without it waits are bounded by number only. */
  readonly monotonic?: () => number;
}

/** Who would wait longer than this, and longer than half the time of a holder, is refused at once and can go elsewhere. */
const longestWaitMs = 1_000;
/** So few before an entry are no overload, however long they take. */
const shortQueue = 16;
/** Holders that the mean of their times looks back upon. */
const holdersInMean = 16;
/** Groups whose times are remembered while nothing runs in them. */
const maxIdleGroups = 1_000;

interface Waiter {
  readonly entry: LaneEntry;
  readonly grant: (group: Group) => void;
  /** Leaves the queue in which the waiter stands now. */
  leave: () => void;
}

/** Exists while a key has a head, or is kept for one; the queue is what stands behind it. */
interface Lane {
  /** Somebody holds the lane, or waits for room in the group with nobody before them. */
  hasHead: boolean;
  running: boolean;
  kept: number;
  /** Each turns an entry away that yields. */
  readonly yielding: Set<() => void>;
  readonly queue: Fifo<Waiter>;
}

interface Group {
  readonly id: string;
  running: number;
  limit: number;
  /** Entries that wait for the group, all principals together. */
  waiting: number;
  readonly beganMs: number;
  /** How long holders took lately; undefined until one has ended. */
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

/** Order per conversation, a limit per agent, fairness between principals, and no wait that is in vain. Every operation is O(1), and nothing is kept for idle keys. */
export function createLanes(options: LanesOptions = {}): Lanes {
  const { maxQueuedPerLane = 50, maxQueued = 1000, retryAfterMs = 1000, monotonic = () => 0 } = options;
  const lanes = new Map<string, Lane>();
  const groups = new Map<string, Group>();
  const maxQueuedPerPrincipal = Math.ceil(maxQueued / 2);
  /** By principal, in all groups; whoever waits for nothing is not in it. */
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

  /** Whoever stood at the head of the lane is gone: the next entry goes on to wait for its group. */
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

  /** Grants what there is room for, one entry of each principal in turn; forgets an idle group when there are many. */
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

  /** Entries of one principal wait for each other and for as many of each of the others. */
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
        // The limit may have been raised since the entries that wait were turned away.
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
