import type { KeptEvent } from './batch.ts';

export interface RingBounds {
  readonly maxCount: number;
  /** Limit for all payloads together. */
  readonly maxBytes: number;
}

export type EventWithPayload = KeptEvent & { readonly json: string };

/** Size of an event without its payload. */
const headBytes = 256;

/**
 * The newest events in memory, limited in number and in bytes; the newest one stays whatever its size. Payloads are
 * bytes outside of the heap: as strings they live just long enough for the garbage collector to move each of them
 * twice, which costs more than all other work of the log.
 */
export class EventRing {
  readonly #startId: number;
  readonly #maxCount: number;
  readonly #kinds: KeptEvent['kind'][] = [];
  readonly #owners: KeptEvent['owner'][] = [];
  readonly #agentIds: KeptEvent['agentId'][] = [];
  readonly #times: Float64Array;
  readonly #bytes: Buffer;
  /** Offset of the payloads in an endless stream of bytes, of which `#bytes` holds the last ones. */
  readonly #starts: Float64Array;
  readonly #sizes: Uint32Array;
  #end = 0;
  /** A payload larger than the whole buffer: its event is the only one here. */
  #oversized: string | undefined;
  #lastId: number;
  /** Everything after this id is here. */
  floor: number;

  /** The ids of the events follow `startId` one by one. */
  constructor(startId: number, { maxCount, maxBytes }: RingBounds) {
    this.#startId = startId;
    this.#maxCount = maxCount;
    this.#times = new Float64Array(maxCount);
    this.#starts = new Float64Array(maxCount);
    this.#sizes = new Uint32Array(maxCount);
    this.#bytes = Buffer.allocUnsafeSlow(maxBytes);
    this.#lastId = startId;
    this.floor = startId;
  }

  push({ id, kind, owner, agentId, atMs, json }: EventWithPayload): void {
    const room = this.#bytes.length;
    const size = Buffer.byteLength(json);
    const at = this.#end % room;
    // Contiguous: the space left before the end of the buffer may be too short.
    const start = at + size > room ? this.#end - at + room : this.#end;
    this.#end = start + size;
    this.floor = Math.max(this.floor, id - this.#maxCount);
    while (this.floor + 1 < id && (this.#starts[this.#slotOf(this.floor + 1)] ?? 0) < this.#end - room) this.floor += 1;
    const slot = this.#slotOf(id);
    this.#kinds[slot] = kind;
    this.#owners[slot] = owner;
    this.#agentIds[slot] = agentId;
    this.#times[slot] = atMs;
    this.#starts[slot] = start;
    this.#sizes[slot] = size;
    this.#lastId = id;
    this.#oversized = size > room ? json : undefined;
    if (size <= room) this.#bytes.write(json, start % room);
  }

  /** Returns events after `id`, oldest first, up to `maxBytes`, at least one; `id` must not be below the floor. */
  after(id: number, maxBytes: number): KeptEvent[] {
    const found: KeptEvent[] = [];
    let bytes = 0;
    for (let next = id + 1; next <= this.#lastId; next += 1) {
      bytes += headBytes + (this.#sizes[this.#slotOf(next)] ?? 0);
      if (found.length > 0 && bytes > maxBytes) break;
      const event = this.#read(next);
      if (event !== undefined) found.push(event);
    }
    return found;
  }

  *newestFirst(): Generator<KeptEvent> {
    for (let id = this.#lastId; id > this.floor; id -= 1) {
      const event = this.#read(id);
      if (event !== undefined) yield event;
    }
  }

  #slotOf(id: number): number {
    return (id - this.#startId) % this.#maxCount;
  }

  #read(id: number): KeptEvent | undefined {
    const slot = this.#slotOf(id);
    const kind = this.#kinds[slot];
    if (kind === undefined) return undefined;
    const start = (this.#starts[slot] ?? 0) % this.#bytes.length;
    const json = this.#oversized ?? this.#bytes.toString('utf8', start, start + (this.#sizes[slot] ?? 0));
    return { id, kind, owner: this.#owners[slot], agentId: this.#agentIds[slot], atMs: this.#times[slot] ?? 0, json };
  }
}
