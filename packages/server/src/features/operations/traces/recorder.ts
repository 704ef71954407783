import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import type { EndedRecord } from './api.ts';
import { toRow } from './record-row.ts';
import { appendRecords } from './store.ts';
import type { TraceRow } from './tables.ts';

const flushMs = 500;
/** Rows of one write; more are written at once. */
const batchRows = 64;
/** Rows pending while the database accepts none: beyond, the oldest are dropped and counted. */
const maxWaiting = 2_048;
const maxWaitingChars = 8 * 1024 * 1024;

export interface TraceRecorderDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** Stores trace records behind the work: several in one write, at most half a second later. What a crash loses is at most that. */
export class TraceRecorder {
  readonly #deps: TraceRecorderDeps;
  #waiting: TraceRow[] = [];
  #waitingChars = 0;
  #writing: Promise<void> | undefined;
  #cancelFlush: (() => void) | undefined;
  #failing = false;
  #dropped = 0;

  constructor(deps: TraceRecorderDeps) {
    this.#deps = deps;
  }

  /** Records that could not be stored since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  push(record: EndedRecord): void {
    const row = toRow(record);
    this.#waiting.push(row);
    this.#waitingChars += row.detailJson.length;
    while (this.#waiting.length > maxWaiting || (this.#waitingChars > maxWaitingChars && this.#waiting.length > 1)) this.#dropOldest();
    if (!this.#failing && this.#waiting.length >= batchRows) void this.flush();
    else this.#flushLater();
  }

  /** Resolves when everything that was pushed before is stored, or cannot be. */
  flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const rows = this.#waiting.splice(0, batchRows);
      const chars = charsOf(rows);
      this.#waitingChars -= chars;
      try {
        await this.#deps.db.telemetry(appendRecords, { rows });
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) this.#deps.log.warn({ err: error }, 'Failed to store traces; they are tried again');
        this.#failing = true;
        this.#waiting.unshift(...rows);
        this.#waitingChars += chars;
        this.#flushLater();
        return;
      }
    }
  }

  #flushLater(): void {
    this.#cancelFlush ??= this.#deps.clock.after(flushMs, () => void this.flush());
  }

  #dropOldest(): void {
    const oldest = this.#waiting.shift();
    this.#waitingChars -= oldest?.detailJson.length ?? 0;
    this.#dropped += 1;
  }
}

function charsOf(rows: readonly TraceRow[]): number {
  return rows.reduce((sum, { detailJson }) => sum + detailJson.length, 0);
}
