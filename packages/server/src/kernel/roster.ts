interface Place<T> {
  readonly member: T;
  /** -1 once it was left. */
  index: number;
}

/**
 * Who is present, in no order; joining and leaving are O(1). Not a Set where every request joins and leaves: V8 links
 * each outgrown hash table of a Set to the next one, so one table that reached the old generation keeps all later ones
 * and their members, whole requests, alive until a full collection.
 */
export class Roster<T> {
  readonly #places: Place<T>[] = [];

  get size(): number {
    return this.#places.length;
  }

  /** The returned function leaves again; further calls of it do nothing. */
  join(member: T): () => void {
    const place: Place<T> = { member, index: this.#places.length };
    this.#places.push(place);
    return () => this.#leave(place);
  }

  /** All that are present now. */
  members(): readonly T[] {
    return this.#places.map((place) => place.member);
  }

  #leave(place: Place<T>): void {
    if (place.index === -1) return;
    const last = this.#places.pop();
    if (last !== undefined && last !== place) {
      last.index = place.index;
      this.#places[place.index] = last;
    }
    place.index = -1;
  }
}
