import type { TraceRecord } from '@gatehouse/contract';

/** Turns that run now: as many as there are lanes with a turn. */
export class RunningTraces {
  readonly #shown = new Set<RunningTrace>();

  add(record: () => TraceRecord): Disposable {
    return new RunningTrace(this.#shown, record);
  }

  records(): readonly TraceRecord[] {
    return [...this.#shown].map(({ record }) => record());
  }
}

class RunningTrace implements Disposable {
  readonly record: () => TraceRecord;
  readonly #among: Set<RunningTrace>;

  constructor(among: Set<RunningTrace>, record: () => TraceRecord) {
    this.record = record;
    this.#among = among;
    among.add(this);
  }

  [Symbol.dispose](): void {
    this.#among.delete(this);
  }
}
