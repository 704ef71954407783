import type { TraceRecord } from '@gatehouse/contract';

/** Turns that run now: as many as there are lanes with a turn. */
export class RunningTraces {
  readonly #records = new Map<string, () => TraceRecord>();

  add(id: string, record: () => TraceRecord): Disposable {
    this.#records.set(id, record);
    return { [Symbol.dispose]: () => void this.#records.delete(id) };
  }

  records(): readonly TraceRecord[] {
    return [...this.#records.values()].map((record) => record());
  }
}
