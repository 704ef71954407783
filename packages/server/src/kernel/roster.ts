interface Slot<T> {
  readonly member: T;
  /** -1 once the member has left. */
  index: number;
}

/**
 * The present members, in no order; joining and leaving are O(1). Not a Set, because every request joins and leaves: V8 links
 * each outgrown hash table of a Set to the next one, so one table that reached the old generation keeps all later ones
 * and their members, whole requests, alive until a full collection.
 */
export class Roster<T> {
  readonly #slots: Slot<T>[] = [];

  get size(): number {
    return this.#slots.length;
  }

  /** Adds a member. The returned function removes it; further calls of it do nothing. */
  join(member: T): () => void {
    const slot: Slot<T> = { member, index: this.#slots.length };
    this.#slots.push(slot);
    return () => this.#leave(slot);
  }

  /** Returns all present members. */
  members(): readonly T[] {
    return this.#slots.map((slot) => slot.member);
  }

  #leave(slot: Slot<T>): void {
    if (slot.index === -1) return;
    const last = this.#slots.pop();
    if (last !== undefined && last !== slot) {
      last.index = slot.index;
      this.#slots[slot.index] = last;
    }
    slot.index = -1;
  }
}
