import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { encodeEntries, endOf, isGap, type LogEntry } from './batch.ts';
import { appendBatch, newestBatch } from './store.ts';

const flushMs = 1_000;
const dayMs = 86_400_000;

export interface RecorderLimits {
  /** Limits of one row. */
  readonly batch: { readonly count: number; readonly chars: number };
  /** Limits of the queue while the database rejects writes. */
  readonly waiting: { readonly count: number; readonly chars: number };
  /** Retention in the database. */
  readonly kept: { readonly count: number; readonly chars: number; readonly days: number };
}

export const recorderLimits: RecorderLimits = {
  batch: { count: 512, chars: 256 * 1024 },
  waiting: { count: 2_048, chars: 2 * 1024 * 1024 },
  kept: { count: 50_000, chars: 32 * 1024 * 1024, days: 7 },
};

export interface RecorderDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: RecorderLimits;
}

/** Writes events to the telemetry file, all of a second in one row, and marks orderly ends: after any other end there is a gap. */
export class Recorder {
  /** Start id of this process: every event comes after it. */
  readonly startId: number;
  /** Settles when this process has its first row. */
  readonly begun: Promise<void>;
  readonly #deps: RecorderDeps;
  #total: { count: number; chars: number };
  #waiting: LogEntry[] = [];
  #waitingChars = 0;
  #writing: Promise<void> | undefined;
  #cancelFlush: (() => void) | undefined;
  #failing = false;

  static async open(deps: RecorderDeps): Promise<Recorder> {
    return new Recorder(deps, await deps.db.read(newestBatch, {}));
  }

  private constructor(deps: RecorderDeps, newest: Awaited<ReturnType<(typeof newestBatch)['run']>>) {
    this.#deps = deps;
    // A crash may have lost ids that were assigned and never stored: the time is beyond them, unless the clock went back.
    this.startId = Math.max((newest?.lastId ?? 0) + 1, Math.floor(deps.clock.now() * 1000));
    this.#total = { count: newest?.totalCount ?? 0, chars: newest?.totalChars ?? 0 };
    const lost: LogEntry[] = newest === undefined || newest.ended !== 0 ? [] : [{ from: newest.lastId + 1, to: this.startId, reason: 'lost' }];
    this.begun = this.#store(lost, this.startId).catch((error: unknown) => this.#fail(error, lost));
  }

  /** `entry.json` is absent when the payload must not be stored. */
  push(entry: LogEntry): void {
    this.#waiting.push(entry);
    this.#waitingChars += charsOf(entry);
    if (!this.#failing && this.#fillsRow()) void this.flush();
    else this.#flushLater();
    this.#bound();
  }

  /** Resolves when what was queued at the call is stored, or cannot be. */
  flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#writing ??= this.#flushAll().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  /** Writes the last row of the process; `id` follows all others. */
  async end(id: number): Promise<void> {
    await this.begun;
    await this.#writing;
    do await this.flush();
    while (this.#waiting.length > 0 && !this.#failing);
    this.#cancelFlush?.();
    // Without this row the next process reports that events may be missing, which is true.
    if (this.#waiting.length === 0) await this.#store([], id, true).catch((error: unknown) => this.#fail(error, []));
  }

  async #flushAll(): Promise<void> {
    await this.begun;
    // Under load new events arrive during each write: they wait for a separate row, as they do otherwise.
    let due = this.#waiting.length;
    while (this.#waiting.length > 0 && (due > 0 || this.#fillsRow())) {
      const entries = this.#take();
      due -= entries.length;
      try {
        await this.#store(entries, endOf(entries.at(-1) ?? { from: 0, to: 0, reason: 'lost' }));
        this.#failing = false;
      } catch (error) {
        this.#fail(error, entries);
        return;
      }
    }
    if (this.#waiting.length > 0) this.#flushLater();
  }

  #fillsRow(): boolean {
    const { batch } = this.#deps.limits;
    return this.#waiting.length >= batch.count || this.#waitingChars >= batch.chars;
  }

  async #store(entries: readonly LogEntry[], lastId: number, ended = false): Promise<void> {
    const { clock, db, limits } = this.#deps;
    const now = clock.now();
    const [first] = entries;
    const chars = sum(entries);
    const total = { count: this.#total.count + entries.length, chars: this.#total.chars + chars };
    await db.telemetry(appendBatch, {
      row: {
        firstId: first === undefined ? lastId : startOf(first),
        lastId,
        atMs: now,
        count: entries.length,
        chars,
        totalCount: total.count,
        totalChars: total.chars,
        ended,
        ...encodeEntries(entries),
      },
      keep: { sinceMs: clock.ageNow() - limits.kept.days * dayMs, count: limits.kept.count, chars: limits.kept.chars },
    });
    this.#total = total;
  }

  /** Takes as much as one row holds, at least one. */
  #take(): LogEntry[] {
    const { batch } = this.#deps.limits;
    let chars = 0;
    const end = this.#waiting.findIndex((entry, index) => index >= batch.count || ((chars += charsOf(entry)) > batch.chars && index > 0));
    const entries = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    this.#waitingChars -= sum(entries);
    return entries;
  }

  #fail(error: unknown, entries: readonly LogEntry[]): void {
    if (!this.#failing) this.#deps.log.warn({ err: error }, 'Failed to store events; clients that resume later may miss some');
    this.#failing = true;
    this.#waiting = [...entries, ...this.#waiting];
    this.#waitingChars += sum(entries);
    this.#bound();
    this.#flushLater();
  }

  #flushLater(): void {
    this.#cancelFlush ??= this.#deps.clock.after(flushMs, () => void this.flush());
  }

  /** Turns events that a failing database rejected into a gap. */
  #bound(): void {
    const { waiting } = this.#deps.limits;
    const [first] = this.#waiting;
    const last = this.#waiting.at(-1);
    if (first === undefined || last === undefined || (this.#waiting.length <= waiting.count && this.#waitingChars <= waiting.chars)) return;
    this.#waiting = [{ from: startOf(first), to: endOf(last), reason: 'lost' }];
    this.#waitingChars = sum(this.#waiting);
  }
}

function startOf(entry: LogEntry): number {
  return isGap(entry) ? entry.from : entry.id;
}

/** An event without its payload takes some space too. */
function charsOf(entry: LogEntry): number {
  return 256 + (isGap(entry) ? 0 : (entry.json?.length ?? 0));
}

function sum(entries: readonly LogEntry[]): number {
  return entries.reduce((chars, entry) => chars + charsOf(entry), 0);
}
