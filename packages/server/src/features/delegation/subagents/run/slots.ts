import { AppError } from '../../../../kernel/app-error.ts';

export interface PlacesLimits {
  /** Of all requesters together. */
  readonly all: number;
  /** Of one requester. */
  readonly each: number;
}

interface Wish {
  /** Undefined: only the limit of all holds. */
  readonly requester: string | undefined;
  readonly signal: AbortSignal;
  /** It ran before, in another process. */
  readonly first: boolean;
}

interface Waiter extends Wish {
  readonly grant: (place: Place) => void;
}

/** The right to run. */
export class Place {
  readonly #places: Places;
  readonly #requester: string | undefined;
  #state: 'held' | 'lent' | 'left' = 'held';

  constructor(places: Places, requester: string | undefined) {
    this.#places = places;
    this.#requester = requester;
  }

  /** Gives the place to others while its run only waits for runs of its own, which may need it: the returned function takes it back at once. */
  lend(): () => void {
    if (this.#state !== 'held') return () => {};
    this.#state = 'lent';
    this.#places.change(undefined, -1);
    return () => {
      if (this.#state !== 'lent') return;
      this.#state = 'held';
      this.#places.change(undefined, 1);
    };
  }

  leave(): void {
    if (this.#state === 'left') return;
    const held = this.#state === 'held' ? -1 : 0;
    this.#state = 'left';
    this.#places.change(this.#requester, held);
  }
}

/** Who may run: first come, first served, past those whose requester has as many as it may. The rows decide how many may wait. */
export class Places {
  readonly #limits: PlacesLimits;
  readonly #waiting: Waiter[] = [];
  readonly #running = new Map<string, number>();
  #active = 0;

  constructor(limits: PlacesLimits) {
    this.#limits = limits;
  }

  get counts() {
    return { active: this.#active, max: this.#limits.all, queued: this.#waiting.length };
  }

  /** Rejects with the reason of the signal. */
  enter(wish: Wish): Promise<Place> {
    const { promise, resolve, reject } = Promise.withResolvers<Place>();
    if (wish.signal.aborted) return Promise.reject(reasonOf(wish.signal));
    const leave = () => {
      const index = this.#waiting.indexOf(waiter);
      if (index !== -1) this.#waiting.splice(index, 1);
      reject(reasonOf(wish.signal));
    };
    const waiter: Waiter = {
      ...wish,
      grant: (place) => {
        wish.signal.removeEventListener('abort', leave);
        resolve(place);
      },
    };
    wish.signal.addEventListener('abort', leave, { once: true });
    if (wish.first) this.#waiting.unshift(waiter);
    else this.#waiting.push(waiter);
    this.#serve();
    return promise;
  }

  /** Of a place: what changes among all, and the requester that it leaves. */
  change(left: string | undefined, active: -1 | 0 | 1): void {
    this.#active += active;
    if (left !== undefined) {
      const others = (this.#running.get(left) ?? 0) - 1;
      if (others <= 0) this.#running.delete(left);
      else this.#running.set(left, others);
    }
    this.#serve();
  }

  #serve(): void {
    for (let index = 0; index < this.#waiting.length && this.#active < this.#limits.all;) {
      const waiter = this.#waiting[index];
      if (waiter === undefined) return;
      const { requester } = waiter;
      const mine = requester === undefined ? 0 : (this.#running.get(requester) ?? 0);
      if (requester !== undefined && mine >= this.#limits.each) {
        index += 1;
        continue;
      }
      this.#waiting.splice(index, 1);
      this.#active += 1;
      if (requester !== undefined) this.#running.set(requester, mine + 1);
      waiter.grant(new Place(this, requester));
    }
  }
}

const reasonOf = ({ reason }: AbortSignal): Error => (reason instanceof Error ? reason : new AppError('cancelled', 'It was cancelled'));
