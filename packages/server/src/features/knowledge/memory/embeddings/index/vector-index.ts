import type { MemoryType, TrustLevel } from '../../api.ts';
import { everybody } from '../../entries/store.ts';
import { signsOf } from './vector-signs.ts';

/** Indexed data of an entry. */
export interface IndexedRow {
  readonly seq: number;
  readonly agentId: string;
  readonly principalId: string;
  readonly memoryType: MemoryType;
  readonly trustLevel: TrustLevel;
  readonly tags: readonly string[];
  readonly expiresAtMs: number | null;
  readonly consolidated: boolean;
  /** Undefined while it has no vector of the current embedder. */
  readonly signs: Int32Array | undefined;
}

export interface IndexFilter {
  readonly agentId: string;
  readonly principalId: string | null;
  readonly types: readonly MemoryType[] | undefined;
  readonly trust: readonly TrustLevel[] | undefined;
  readonly tags: readonly string[];
  readonly includeDerivedSources: boolean;
  readonly atMs: number;
}

const types: readonly MemoryType[] = ['working', 'episodic', 'semantic', 'procedural'];
const trusts: readonly TrustLevel[] = ['system', 'learned', 'external'];
const consolidatedBit = 16;
/** Factor of candidates selected by signs alone over requested results. */
const refined = 10;
/** More than any distance. */
const excluded = 0xffff;
/** Kind of an entry that has no vector, or is gone. */
const absent = 255;

/**
 * Signs and filter columns of all entries, in the order of their `seq`: some 100 bytes each, so that the vectors can stay in
 * the file. It lives in the search thread.
 */
export class VectorIndex {
  readonly #words: number;
  readonly #owners = new Map<string, number>();
  readonly #ownerNames: { readonly agentId: string; readonly principalId: string }[] = [];
  #size = 0;
  #dead = 0;
  #seqs = new Float64Array(0);
  #ownerOf = new Uint32Array(0);
  #kinds = new Uint8Array(0);
  #expiries = new Float64Array(0);
  /** Two words of tag bits each: a tag sets two bits. */
  #tagBits = new Int32Array(0);
  #signs = new Int32Array(0);
  #distances = new Uint16Array(0);

  constructor(words: number) {
    this.#words = words;
  }

  get lastSeq(): number {
    return this.#size === 0 ? 0 : (this.#seqs[this.#size - 1] ?? 0);
  }

  /** True when most entries in it are gone. */
  get sparse(): boolean {
    return this.#dead > 1_000 && this.#dead * 2 > this.#size;
  }

  /** Adds an entry, mostly at the end, or changes an existing one. */
  put(row: IndexedRow): void {
    const slot = this.#place(row.seq);
    if (this.#seqs[slot] !== row.seq || slot === this.#size) this.#insert(slot, row.seq);
    this.#ownerOf[slot] = this.#ownerCode(row.agentId, row.principalId);
    this.#kinds[slot] = row.signs === undefined ? absent : kindOf(row);
    this.#expiries[slot] = row.expiresAtMs ?? Infinity;
    const [low, high] = tagMask(row.tags);
    this.#tagBits[slot * 2] = low;
    this.#tagBits[slot * 2 + 1] = high;
    if (row.signs !== undefined) this.#signs.set(row.signs.subarray(0, this.#words), slot * this.#words);
  }

  remove(seq: number): void {
    const slot = this.#place(seq);
    if (slot === this.#size || this.#seqs[slot] !== seq) return;
    this.#kinds[slot] = absent;
    this.#dead += 1;
  }

  /**
   * Returns positions of the `count` nearest entries that match the filter, nearest first. Compares the signs of both, which
   * is fast, then the best of those by their signs and the numbers of the query, which is twice as precise. Tags
   * must be verified in the row.
   */
  nearest(query: Float32Array, filter: IndexFilter, count: number): number[] {
    const first = this.#bySigns(signsOf(query), filter, count * refined);
    const tables = byteTables(query);
    const bytes = new Uint8Array(this.#signs.buffer);
    const perEntry = this.#words * 4;
    return first
      .map((slot) => {
        let product = 0;
        const from = slot * perEntry;
        for (let byte = 0; byte < perEntry; byte += 1) product += tables[byte * 256 + (bytes[from + byte] ?? 0)] ?? 0;
        return { seq: this.#seqs[slot] ?? 0, product };
      })
      .sort((a, b) => b.product - a.product)
      .slice(0, count)
      .map(({ seq }) => seq);
  }

  /** Returns slots of matching entries whose signs differ least from the query's: `count`, and those that tie with the last. */
  #bySigns(query: Int32Array, filter: IndexFilter, count: number): number[] {
    const size = this.#size;
    const words = this.#words;
    const signs = this.#signs;
    const distances = this.#distances;
    const kindOfSlot = this.#kinds;
    const ownerOfSlot = this.#ownerOf;
    const expiries = this.#expiries;
    const tagBits = this.#tagBits;
    const owners = Uint8Array.from(this.#ownerNames, (owner) => Number(owns(filter, owner)));
    const kinds = Uint8Array.from({ length: 256 }, (_, kind) => Number(kind !== absent && acceptsKind(filter, kind)));
    const [low, high] = tagMask(filter.tags);
    const histogram = new Uint32Array(words * 32 + 1);
    for (let slot = 0; slot < size; slot += 1) {
      const fits =
        kinds[kindOfSlot[slot] ?? absent] === 1 &&
        owners[ownerOfSlot[slot] ?? 0] === 1 &&
        (expiries[slot] ?? 0) > filter.atMs &&
        ((tagBits[slot * 2] ?? 0) & low) === low &&
        ((tagBits[slot * 2 + 1] ?? 0) & high) === high;
      if (!fits) {
        distances[slot] = excluded;
        continue;
      }
      let distance = 0;
      const from = slot * words;
      for (let word = 0; word < words; word += 1) distance += bitCount((signs[from + word] ?? 0) ^ (query[word] ?? 0));
      distances[slot] = distance;
      histogram[distance] = (histogram[distance] ?? 0) + 1;
    }
    let limit = 0;
    for (let seen = 0; limit < histogram.length; limit += 1) if ((seen += histogram[limit] ?? 0) >= count) break;
    const found: number[] = [];
    for (let slot = 0; slot < size; slot += 1) if ((distances[slot] ?? excluded) <= limit) found.push(slot);
    return found;
  }

  /** Returns the slot of an entry, or the one that it must get. */
  #place(seq: number): number {
    let low = 0;
    let high = this.#size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#seqs[middle] ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Makes a slot for an entry; with several writers one may become visible after others with higher positions. */
  #insert(slot: number, seq: number): void {
    if (this.#size === this.#seqs.length) this.#grow();
    if (slot < this.#size) {
      for (const values of [this.#seqs, this.#ownerOf, this.#kinds, this.#expiries]) values.copyWithin(slot + 1, slot, this.#size);
      for (const [values, width] of [[this.#tagBits, 2] as const, [this.#signs, this.#words] as const])
        values.copyWithin((slot + 1) * width, slot * width, this.#size * width);
    }
    this.#size += 1;
    this.#seqs[slot] = seq;
  }

  #ownerCode(agentId: string, principalId: string): number {
    const name = JSON.stringify([agentId, principalId]);
    let code = this.#owners.get(name);
    if (code === undefined) {
      code = this.#ownerNames.push({ agentId, principalId }) - 1;
      this.#owners.set(name, code);
    }
    return code;
  }

  #grow(): void {
    const capacity = Math.max(1_024, Math.ceil(this.#size * 1.5));
    const grown = <T extends Float64Array | Uint32Array | Uint8Array | Int32Array>(made: T, old: T): T => {
      made.set(old);
      return made;
    };
    this.#seqs = grown(new Float64Array(capacity), this.#seqs);
    this.#ownerOf = grown(new Uint32Array(capacity), this.#ownerOf);
    this.#kinds = grown(new Uint8Array(capacity), this.#kinds);
    this.#expiries = grown(new Float64Array(capacity), this.#expiries);
    this.#tagBits = grown(new Int32Array(capacity * 2), this.#tagBits);
    this.#signs = grown(new Int32Array(capacity * this.#words), this.#signs);
    this.#distances = new Uint16Array(capacity);
  }
}

function kindOf(row: IndexedRow): number {
  return trusts.indexOf(row.trustLevel) * types.length + types.indexOf(row.memoryType) + (row.consolidated ? consolidatedBit : 0);
}

function acceptsKind(filter: IndexFilter, kind: number): boolean {
  const plain = kind % consolidatedBit;
  const trust = trusts[Math.floor(plain / types.length)];
  const type = types[plain % types.length];
  return (
    trust !== undefined &&
    type !== undefined &&
    (filter.trust?.includes(trust) ?? true) &&
    (filter.types?.includes(type) ?? true) &&
    (filter.includeDerivedSources || kind < consolidatedBit)
  );
}

function owns(filter: IndexFilter, owner: { readonly agentId: string; readonly principalId: string }): boolean {
  return (
    owner.agentId === filter.agentId && (filter.principalId === null || owner.principalId === filter.principalId || owner.principalId === everybody)
  );
}

/** Contribution of each byte of signs to the product with the query: 256 sums for each byte of an entry. */
function byteTables(query: Float32Array): Float32Array {
  const tables = new Float32Array(query.length * 32);
  for (let byte = 0; byte < query.length / 8; byte += 1) {
    const from = byte * 256;
    for (let bit = 0; bit < 8; bit += 1) tables[from] = (tables[from] ?? 0) - (query[byte * 8 + bit] ?? 0);
    for (let value = 1; value < 256; value += 1) {
      const lowest = value & -value;
      // Equal to the value without its lowest bit, whose sign flips.
      tables[from + value] = (tables[from + (value ^ lowest)] ?? 0) + 2 * (query[byte * 8 + Math.log2(lowest)] ?? 0);
    }
  }
  return tables;
}

/** Two of 64 bits for each tag: all entries that have the tags have these bits, and few others. */
function tagMask(tags: readonly string[]): readonly [number, number] {
  let low = 0;
  let high = 0;
  for (const tag of tags) {
    let hash = 0x811c9dc5;
    for (let i = 0; i < tag.length; i += 1) hash = Math.imul(hash ^ tag.charCodeAt(i), 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 15), 0x45d9f3b);
    low |= 1 << (hash & 31);
    high |= 1 << ((hash >>> 16) & 31);
  }
  return [low, high];
}

function bitCount(value: number): number {
  let bits = value - ((value >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
