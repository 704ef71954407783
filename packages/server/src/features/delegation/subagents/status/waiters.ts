import type { RunRow } from '../run/row.ts';

type EndListener = (ended: RunRow) => void;
/** Called when a run begins to wait for its provider or a person; again after each retry without success. */
type Waits = () => void;

/** Notifies callers that await the end of a run. */
export class Waiters {
  readonly #byRun = new Map<string, Set<EndListener>>();
  readonly #waits = new Map<string, Waits>();

  /** Calls `listener` at each end of one of these runs, with its row, until the returned function is called. */
  listen(runIds: readonly string[], listener: EndListener): () => void {
    for (const id of runIds) {
      const listeners = this.#byRun.get(id);
      if (listeners === undefined) this.#byRun.set(id, new Set([listener]));
      else listeners.add(listener);
    }
    return () => {
      for (const id of runIds) {
        const listeners = this.#byRun.get(id);
        listeners?.delete(listener);
        if (listeners?.size === 0) this.#byRun.delete(id);
      }
    };
  }

  /** Registers the one listener of a run, from whatever started it. */
  onWait(runId: string, waits: Waits): () => void {
    this.#waits.set(runId, waits);
    return () => this.#waits.delete(runId);
  }

  waits(runId: string): void {
    this.#waits.get(runId)?.();
  }

  ended(row: RunRow): void {
    for (const listener of this.#byRun.get(row.id) ?? []) listener(row);
  }
}
