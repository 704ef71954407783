import type { RunRow } from '../run/row.ts';

type Look = (ended: RunRow) => void;
/** Called when a run begins to wait, for its provider or a person; again after each vain look. */
type Waits = () => void;

/** Who waits for the end of a run. */
export class Waiters {
  readonly #byRun = new Map<string, Set<Look>>();
  readonly #waits = new Map<string, Waits>();

  /** Calls `look` at each end of one of these runs, with its row, until the returned function is called. */
  listen(runIds: readonly string[], look: Look): () => void {
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

  /** There is one for each run: whatever started it. */
  onWait(runId: string, waits: Waits): () => void {
    this.#waits.set(runId, waits);
    return () => this.#waits.delete(runId);
  }

  waits(runId: string): void {
    this.#waits.get(runId)?.();
  }

  ended(row: RunRow): void {
    for (const look of this.#byRun.get(row.id) ?? []) look(row);
  }
}
