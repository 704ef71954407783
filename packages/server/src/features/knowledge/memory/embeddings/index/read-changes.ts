export interface Change {
  readonly version: number;
  /** The memory that changed. */
  readonly seq: number;
}

/**
 * Tracks which entries of the log of changes were read. Not by the highest version: with several writers a change may become visible
 * after others with higher versions. A version that is missing is looked for until the log has dropped its neighbours, which is
 * thousands of changes later. With one writer none is ever missing.
 */
export class ReadChanges {
  /** All versions up to this one were read, or are given up. */
  #low = 0;
  #highest = 0;
  /** Versions above `#low` that were read. */
  readonly #later = new Set<number>();

  /** Entries after this version may be unread. */
  get after(): number {
    return this.#low;
  }

  /** Returns whether entries were dropped unread, when the oldest that the log has is `first`. */
  hasMissed(first: number): boolean {
    return first > this.#highest + 1;
  }

  /** Marks entries as read; returns those that were not. `first`: the oldest that the log has. */
  read(first: number, changes: readonly Change[]): Change[] {
    const unread = changes.filter(({ version }) => version > this.#low && !this.#later.has(version));
    for (const { version } of unread) {
      this.#later.add(version);
      this.#highest = Math.max(this.#highest, version);
    }
    if (first - 1 > this.#low) {
      this.#low = first - 1;
      for (const version of this.#later) if (version <= this.#low) this.#later.delete(version);
    }
    while (this.#later.delete(this.#low + 1)) this.#low += 1;
    return unread;
  }
}
