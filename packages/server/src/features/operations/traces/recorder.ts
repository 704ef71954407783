import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import type { EndedRecord } from './api.ts';
import { toLines } from './record-row.ts';
import { appendBatch, expandBatch } from './store.ts';

const flushMs = 500;
/** Records of one batch; more are written at once. Making rows of a batch holds the writer for some milliseconds. */
const batchRecords = 64;
/** Records pending while the database accepts none: beyond, the oldest are dropped. */
const maxPending = 2_048;
const maxPendingChars = 8 * 1024 * 1024;
/** Batches become rows when nothing was recorded for this time, with pauses between two. */
const quietMs = 250;
const pauseMs = 20;
/** Batches that become rows in one commit, which then writes most pages of the indexes once. */
const expandedAtOnce = 4;
/** Beyond, batches become rows while work continues: a reader waits for all of them. */
const maxBatches = 64;

export interface TraceRecorderDeps {
  readonly db: Pick<Db, 'telemetry'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Stores trace records behind the work: as lines of a batch, at most half a second later, of which a crash loses no more than that. Batches become
 * rows behind the turns, or when somebody reads.
 */
export class TraceRecorder {
  readonly #deps: TraceRecorderDeps;
  /** Records that have not become text: many at once take half of the time that one at a time takes between other work. */
  #ended: EndedRecord[] = [];
  /** Records by their lines. */
  #pending: string[] = [];
  #pendingChars = 0;
  /** Batches of this process that have not become rows. */
  #batches = 0;
  #pushedAt = 0;
  #writing: Promise<void> | undefined;
  #cancelWrite: (() => void) | undefined;
  #expanding: Promise<void> | undefined;
  #cancelExpand: (() => void) | undefined;
  #failing = false;
  #isDropping = false;

  constructor(deps: TraceRecorderDeps) {
    this.#deps = deps;
  }

  push(record: EndedRecord): void {
    this.#pushedAt = this.#deps.clock.monotonic();
    this.#ended.push(record);
    const isFull = this.#ended.length >= batchRecords;
    if (isFull) this.#pack();
    if (!this.#failing && isFull) void this.write();
    else this.#cancelWrite ??= this.#deps.clock.after(flushMs, () => void this.write());
  }

  /** Resolves when everything that was pushed before is stored, or cannot be. */
  write(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  /** Makes everything that was pushed before visible to readers; resolves to false when the database did not accept it. */
  async flush(): Promise<boolean> {
    await this.write();
    this.#cancelExpand?.();
    this.#cancelExpand = undefined;
    await this.#expanding;
    this.#expanding ??= this.#expandAll().finally(() => (this.#expanding = undefined));
    await this.#expanding;
    return !this.#failing;
  }

  /** Stores what is pending, and makes no more rows. */
  async end(): Promise<void> {
    await this.write();
    this.#cancelWrite?.();
    this.#cancelExpand?.();
    await this.#expanding;
  }

  /** Makes lines of the records. */
  #pack(): void {
    for (const record of this.#ended) {
      const lines = toLines(record);
      this.#pending.push(lines);
      this.#pendingChars += lines.length;
    }
    this.#ended = [];
    this.#bound();
  }

  async #writeAll(): Promise<void> {
    for (this.#pack(); this.#pending.length > 0; this.#pack()) {
      const lines = this.#pending.splice(0, batchRecords);
      const chars = charsOf(lines);
      this.#pendingChars -= chars;
      try {
        await this.#deps.db.telemetry(appendBatch, { records: lines.join('\n') });
        this.#failing = false;
        this.#isDropping = false;
        this.#batches += 1;
        this.#expandLater(pauseMs);
      } catch (error) {
        this.#fail(error);
        this.#pending.unshift(...lines);
        this.#pendingChars += chars;
        this.#bound();
        this.#cancelWrite ??= this.#deps.clock.after(flushMs, () => void this.write());
        return;
      }
    }
  }

  #expandLater(afterMs: number): void {
    const { clock } = this.#deps;
    this.#cancelExpand ??= clock.after(afterMs, () => {
      this.#cancelExpand = undefined;
      const leftMs = this.#pushedAt + quietMs - clock.monotonic();
      if (leftMs > 0 && this.#batches <= maxBatches) this.#expandLater(leftMs);
      else this.#expanding ??= this.#expandOne().finally(() => (this.#expanding = undefined));
    });
  }

  async #expandOne(): Promise<void> {
    if (await this.#expandSome()) this.#expandLater(this.#batches > maxBatches ? 0 : pauseMs);
  }

  async #expandAll(): Promise<void> {
    while (await this.#expandSome());
  }

  /** Returns whether there may be more. */
  async #expandSome(): Promise<boolean> {
    const found = await Promise.all(Array.from({ length: Math.max(1, Math.min(expandedAtOnce, this.#batches)) }, () => this.#expand()));
    return found.every((one) => one);
  }

  /** Returns whether there may be more. */
  async #expand(): Promise<boolean> {
    try {
      const more = await this.#deps.db.telemetry(expandBatch, undefined);
      this.#batches = more ? Math.max(0, this.#batches - 1) : 0;
      this.#failing = false;
      return more;
    } catch (error) {
      // The batch stays, and is tried again with the next one.
      this.#fail(error);
      return false;
    }
  }

  #fail(error: unknown): void {
    if (!this.#failing) this.#deps.log.warn({ err: error }, 'Failed to store traces; they are tried again');
    this.#failing = true;
  }

  /** Drops the oldest beyond the limits. */
  #bound(): void {
    const before = this.#pending.length;
    while (this.#pending.length > maxPending || (this.#pendingChars > maxPendingChars && this.#pending.length > 1))
      this.#pendingChars -= this.#pending.shift()?.length ?? 0;
    if (this.#pending.length === before) return;
    if (!this.#isDropping) this.#deps.log.warn({}, 'Traces are dropped: the database does not accept them');
    this.#isDropping = true;
  }
}

function charsOf(lines: readonly string[]): number {
  return lines.reduce((sum, { length }) => sum + length, 0);
}
