import { isGap, type KeptEvent, type LogEntry } from './batch.ts';

/** The newest events in memory, bounded in number and in characters; the newest one stays whatever its size. */
export class EventRing {
  readonly #maxCount: number;
  readonly #maxChars: number;
  #events: (KeptEvent | undefined)[] = [];
  #head = 0;
  #chars = 0;
  /** Everything after this id is here. */
  floor: number;

  constructor(floor: number, bounds: { readonly maxCount: number; readonly maxChars: number }) {
    this.floor = floor;
    this.#maxCount = bounds.maxCount;
    this.#maxChars = bounds.maxChars;
  }

  push(event: KeptEvent): void {
    this.#events.push(event);
    this.#chars += charsOf(event);
    while (this.#events.length - this.#head > this.#maxCount || (this.#chars > this.#maxChars && this.#events.length - this.#head > 1)) this.#drop();
  }

  /** What follows `id`, oldest first, up to `maxChars`, at least one; `id` must not be below the floor. */
  after(id: number, maxChars: number): KeptEvent[] {
    const found: KeptEvent[] = [];
    let chars = 0;
    for (let at = this.#indexAfter(id); at < this.#events.length; at += 1) {
      const event = this.#events[at];
      if (event === undefined || (found.length > 0 && (chars += charsOf(event)) > maxChars)) break;
      found.push(event);
    }
    return found;
  }

  *newestFirst(): Generator<KeptEvent> {
    for (let at = this.#events.length - 1; at >= this.#head; at -= 1) {
      const event = this.#events[at];
      if (event !== undefined) yield event;
    }
  }

  #drop(): void {
    const event = this.#events[this.#head];
    if (event === undefined) return;
    this.#events[this.#head] = undefined;
    this.floor = event.id;
    this.#chars -= charsOf(event);
    this.#head += 1;
    if (this.#head * 2 <= this.#events.length) return;
    this.#events = this.#events.slice(this.#head);
    this.#head = 0;
  }

  #indexAfter(id: number): number {
    let low = this.#head;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.id ?? 0) <= id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** An event without its payload takes some room too. */
export function charsOf(entry: LogEntry): number {
  return 256 + (isGap(entry) ? 0 : (entry.json?.length ?? 0));
}
