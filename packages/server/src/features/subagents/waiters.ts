/** Who waits for the end of a run; only a hint to look at its row. */
export class Waiters {
  readonly #byRun = new Map<string, Set<() => void>>();

  /** Calls `look` at each end of one of these runs, until the returned function is called. */
  listen(runIds: readonly string[], look: () => void): () => void {
    for (const id of runIds) {
      const looks = this.#byRun.get(id);
      if (looks === undefined) this.#byRun.set(id, new Set([look]));
      else looks.add(look);
    }
    return () => {
      for (const id of runIds) {
        const looks = this.#byRun.get(id);
        looks?.delete(look);
        if (looks?.size === 0) this.#byRun.delete(id);
      }
    };
  }

  ended(runId: string): void {
    for (const look of this.#byRun.get(runId) ?? []) look();
  }
}
