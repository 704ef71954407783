import { createFifo, type Fifo } from './fifo.ts';

/** An entry of a lane while it waits: first for its lane, then for its group. */
export interface Waiter {
  readonly principalId: string;
  /** Called when the group has a slot for it. */
  readonly grant: (group: LaneGroup) => void;
  /** Leaves the queue that the waiter is in now. */
  leave: () => void;
}

interface Principal {
  readonly id: string;
  readonly waiting: Fifo<Waiter>;
  leaveRing: () => void;
}

/** An entry that would wait longer than this, and longer than half a holder's time, is refused at once and can go elsewhere. */
const longestWaitMs = 1_000;
/** This few entries ahead are not an overload, however long they take. */
const shortQueue = 16;
/** Number of holders in the moving average of their times. */
const holdersInMean = 16;

/** The slots of a group of lanes, for which principals wait in turn, and how long its holders run. */
export class LaneGroup {
  readonly id: string;
  /** Maximum number of concurrent holders. */
  limit: number;
  #running = 0;
  /** Waiting entries of all principals. */
  #waiting = 0;
  readonly #beganMs: number;
  /** Moving average of holders' times; undefined until one has finished. */
  #meanMs: number | undefined;
  /** Principals that have waiting entries, the next one to be served first. */
  readonly #ring = createFifo<Principal>();
  readonly #principals = new Map<string, Principal>();

  constructor(id: string, limit: number, nowMs: number) {
    this.id = id;
    this.limit = limit;
    this.#beganMs = nowMs;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get hasSlot(): boolean {
    return this.#running < this.limit;
  }

  get hasWaiting(): boolean {
    return this.#ring.size > 0;
  }

  get isIdle(): boolean {
    return this.#running === 0 && this.#principals.size === 0;
  }

  enter(): void {
    this.#running += 1;
  }

  left(heldMs: number): void {
    this.#running -= 1;
    this.#meanMs = this.#meanMs === undefined ? heldMs : this.#meanMs + (heldMs - this.#meanMs) / holdersInMean;
  }

  /** Makes an entry wait for a slot; `onLeave` is called when it leaves without one. */
  queue(waiter: Waiter, onLeave: () => void): void {
    const id = waiter.principalId;
    let principal = this.#principals.get(id);
    if (principal === undefined) {
      principal = { id, waiting: createFifo(), leaveRing: () => {} };
      principal.leaveRing = this.#ring.push(principal);
      this.#principals.set(id, principal);
    }
    const from = principal;
    const leaveQueue = from.waiting.push(waiter);
    this.#waiting += 1;
    waiter.leave = () => {
      leaveQueue();
      this.#waiting -= 1;
      if (from.waiting.size === 0) {
        from.leaveRing();
        this.#principals.delete(id);
      }
      onLeave();
    };
  }

  /** Admits entries while there are slots, one of each principal in turn. */
  fill(): void {
    while (this.hasSlot) {
      const principal = this.#ring.shift();
      const waiter = principal?.waiting.shift();
      if (principal === undefined || waiter === undefined) return;
      if (principal.waiting.size > 0) principal.leaveRing = this.#ring.push(principal);
      else this.#principals.delete(principal.id);
      this.#waiting -= 1;
      waiter.grant(this);
    }
  }

  /**
   * Returns how long another entry of a principal would wait, if that is too long; undefined otherwise. Entries of one principal wait
   * for each other and for as many of each other principal.
   */
  excessiveWaitMs(principalId: string, nowMs: number): number | undefined {
    const own = this.#principals.get(principalId);
    const principals = this.#principals.size + (own === undefined ? 1 : 0);
    const position = Math.min(this.#waiting + 1, ((own?.waiting.size ?? 0) + 1) * principals);
    if (position <= shortQueue) return undefined;
    const heldMs = this.#meanMs ?? nowMs - this.#beganMs;
    const waitMs = (position * heldMs) / this.limit;
    return waitMs <= Math.max(longestWaitMs, heldMs / 2) ? undefined : waitMs;
  }
}
