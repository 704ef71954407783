import { AppError } from '../../../../kernel/app-error.ts';

export interface SlotLimits {
  /** Limit for all requesters together. */
  readonly all: number;
  /** Limit for one requester. */
  readonly each: number;
}

interface Wish {
  /** Undefined when only the total limit applies. */
  readonly requester: string | undefined;
  readonly signal: AbortSignal;
  /** Whether the run started before, in another process. */
  readonly first: boolean;
}

interface Waiter extends Wish {
  readonly grant: (slot: Slot) => void;
}

/** Permission to run. */
export class Slot {
  readonly #slots: Slots;
  readonly #requester: string | undefined;
  #state: 'held' | 'lent' | 'left' = 'held';

  constructor(slots: Slots, requester: string | undefined) {
    this.#slots = slots;
    this.#requester = requester;
  }

  /** Lends the slot while its run only waits for its own sub-agents, which may need it; the returned function reclaims it at once. */
  lend(): () => void {
    if (this.#state !== 'held') return () => {};
    this.#state = 'lent';
    this.#slots.change(undefined, -1);
    return () => {
      if (this.#state !== 'lent') return;
      this.#state = 'held';
      this.#slots.change(undefined, 1);
    };
  }

  leave(): void {
    if (this.#state === 'left') return;
    const held = this.#state === 'held' ? -1 : 0;
    this.#state = 'left';
    this.#slots.change(this.#requester, held);
  }
}

/** Grants slots in order of arrival, skipping requesters that have reached their limit. The rows limit how many may wait. */
export class Slots {
  readonly #limits: () => SlotLimits;
  readonly #waiting: Waiter[] = [];
  readonly #running = new Map<string, number>();
  #active = 0;

  constructor(limits: () => SlotLimits) {
    this.#limits = limits;
  }

  get counts() {
    return { active: this.#active, max: this.#limits().all, queued: this.#waiting.length };
  }

  /** Rejects with the reason of the signal. */
  enter(wish: Wish): Promise<Slot> {
    const { promise, resolve, reject } = Promise.withResolvers<Slot>();
    if (wish.signal.aborted) return Promise.reject(reasonOf(wish.signal));
    const leave = () => {
      const index = this.#waiting.indexOf(waiter);
      if (index !== -1) this.#waiting.splice(index, 1);
      reject(reasonOf(wish.signal));
    };
    const waiter: Waiter = {
      ...wish,
      grant: (slot) => {
        wish.signal.removeEventListener('abort', leave);
        resolve(slot);
      },
    };
    wish.signal.addEventListener('abort', leave, { once: true });
    if (wish.first) this.#waiting.unshift(waiter);
    else this.#waiting.push(waiter);
    this.#serve();
    return promise;
  }

  /** Changes the number of active slots, and releases one of the given requester. */
  change(requester: string | undefined, active: -1 | 0 | 1): void {
    this.#active += active;
    if (requester !== undefined) {
      const others = (this.#running.get(requester) ?? 0) - 1;
      if (others <= 0) this.#running.delete(requester);
      else this.#running.set(requester, others);
    }
    this.#serve();
  }

  /** Call when the limits have changed: with higher ones, waiting runs begin. */
  limitsChanged(): void {
    this.#serve();
  }

  #serve(): void {
    const { all, each } = this.#limits();
    for (let index = 0; index < this.#waiting.length && this.#active < all;) {
      const waiter = this.#waiting[index];
      if (waiter === undefined) return;
      const { requester } = waiter;
      const mine = requester === undefined ? 0 : (this.#running.get(requester) ?? 0);
      if (requester !== undefined && mine >= each) {
        index += 1;
        continue;
      }
      this.#waiting.splice(index, 1);
      this.#active += 1;
      if (requester !== undefined) this.#running.set(requester, mine + 1);
      waiter.grant(new Slot(this, requester));
    }
  }
}

const reasonOf = ({ reason }: AbortSignal): Error => (reason instanceof Error ? reason : new AppError('cancelled', 'It was cancelled'));
