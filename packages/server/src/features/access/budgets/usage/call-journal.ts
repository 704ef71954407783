import { closeSync, ftruncateSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { parseLine, toLine } from './journal-lines.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { CallsOf, MadeCall, MadeWork, NotedCalls } from '../api.ts';

/** Size from which on the lines of ended turns are removed while others run. */
const rewriteBytes = 1024 * 1024;
/** How often a file that nobody needs any more is emptied at most, while it is small. */
const emptyEveryMs = 60_000;
const smallBytes = 64 * 1024;

export interface CallJournalDeps {
  readonly file: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** Books a call that ended after its turn. */
  readonly bookLate: (of: CallsOf, record: CallRecord) => Promise<void>;
}

/**
 * The file of model calls that have ended and are not booked yet. A line is in it before anything else learns of the call, and survives the kill of
 * the process; it is not synced, since a line costs a turn a few microseconds and a sync milliseconds. The next start books what is left.
 */
export class CallJournal implements Disposable {
  /** Calls that an earlier process left; some of them may be booked. */
  readonly left: readonly MadeWork[];
  readonly #deps: CallJournalDeps;
  #fd: number | undefined;
  #bytes: number;
  /** Whether `left` is booked. */
  #isClear: boolean;
  #emptiedAtMs: number;
  /** Whether the last line may be cut off, such as on a full disk. */
  #isTorn = false;
  /** Lines of what still runs. */
  readonly #open = new Set<readonly string[]>();

  constructor(deps: CallJournalDeps) {
    this.#deps = deps;
    this.#emptiedAtMs = deps.clock.monotonic();
    const text = readText(deps.file);
    this.left = readLeft(text);
    this.#isClear = this.left.length === 0;
    this.#bytes = text.length;
    try {
      this.#fd = openSync(deps.file, 'a', 0o600);
    } catch (error) {
      deps.log.error({ err: error }, 'Failed to open the journal of model calls: those of turns that a kill interrupts will be missing in reports');
    }
  }

  /** Call when everything in `left` is booked. */
  clear(): void {
    this.#isClear = true;
    this.#empty();
  }

  /** Returns where the calls of one turn, or of one background work item, are noted until they are booked. */
  open(of: CallsOf): NotedCalls {
    const lines: string[] = [];
    let isInFlight = false;
    let isClosed = false;
    const { turn: _, ...again } = of;
    /** The first line says how the turn began. */
    const whose = () => (lines.length === 0 ? of : again);
    const write = (line: string) => {
      if (lines.length === 0) this.#open.add(lines);
      lines.push(line);
      this.#append(line);
    };
    return {
      begin: () => {
        isInFlight = true;
        write(toLine({ is: 'begun', of: whose() }));
      },
      add: (record) => {
        if (isClosed) return this.#addLate(of, record);
        if (record.outcome === 'ok') isInFlight = false;
        write(toLine({ is: 'made', of: whose(), record }));
      },
      settle: () => {
        if (!isInFlight) return;
        isInFlight = false;
        write(toLine({ is: 'settled', of: whose() }));
      },
      keep: (answer) => write(toLine({ is: 'kept', of: whose(), answer })),
      close: () => {
        isClosed = true;
        if (this.#open.delete(lines)) this.#shrink();
      },
    };
  }

  #addLate(of: CallsOf, record: CallRecord): void {
    const noted = this.open(of);
    noted.add(record);
    this.#deps.bookLate(of, record).then(noted.close, (error: unknown) => {
      this.#deps.log.warn({ err: error, turnId: of.id }, 'Failed to book a model call that ended after its turn: the next start books it');
    });
  }

  #append(line: string): void {
    if (this.#fd === undefined) return;
    const text = this.#isTorn ? `\n${line}` : line;
    try {
      const bytes = writeSync(this.#fd, text);
      this.#bytes += bytes;
      // No error says that the disk became full on the way.
      this.#isTorn = bytes < text.length;
    } catch (error) {
      if (!this.#isTorn)
        this.#deps.log.warn({ err: error }, 'Failed to note model calls: those of turns that a kill interrupts now will be missing in reports');
      this.#isTorn = true;
    }
  }

  #shrink(): void {
    if (this.#open.size > 0) {
      if (this.#bytes > rewriteBytes) this.#rewrite();
    } else if (this.#bytes > smallBytes || this.#deps.clock.monotonic() - this.#emptiedAtMs > emptyEveryMs) this.#empty();
  }

  #empty(): void {
    if (this.#fd === undefined || this.#bytes === 0) return;
    this.#emptiedAtMs = this.#deps.clock.monotonic();
    try {
      ftruncateSync(this.#fd);
      this.#bytes = 0;
      this.#isTorn = false;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'Failed to empty the journal of model calls');
    }
  }

  /** Keeps the lines of what still runs. */
  #rewrite(): void {
    const copy = `${this.#deps.file}.new`;
    // Not again before the file has grown by as much, also when this fails.
    this.#bytes = rewriteBytes / 2;
    try {
      rmSync(copy, { force: true });
      const fd = openSync(copy, 'a', 0o600);
      try {
        writeFileSync(fd, [...this.#open].flat().join(''));
        renameSync(copy, this.#deps.file);
      } catch (error) {
        closeSync(fd);
        throw error;
      }
      if (this.#fd !== undefined) closeSync(this.#fd);
      this.#fd = fd;
      this.#isTorn = false;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'Failed to shrink the journal of model calls');
    }
  }

  [Symbol.dispose](): void {
    // A start that failed leaves them to the next one.
    if (this.#isClear && this.#open.size === 0) this.#empty();
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the calls of each turn in the order in which they ended. */
function readLeft(text: string): MadeWork[] {
  const found = new Map<string, CallsOf & { readonly calls: MadeCall[]; isInFlight: boolean; earlier?: number; answer?: string }>();
  for (const line of text.split('\n')) {
    const entry = line === '' ? undefined : parseLine(line);
    if (entry === undefined) continue;
    const { of } = entry;
    const work: typeof found extends Map<string, infer Work> ? Work : never = found.get(of.id) ?? { ...of, calls: [], isInFlight: false };
    found.set(of.id, work);
    // A turn that was resumed begins again.
    if (of.turn !== undefined && work.calls.length > 0) Object.assign(work, { turn: of.turn, earlier: work.calls.length });
    if (entry.is === 'kept') {
      work.answer = entry.answer;
      continue;
    }
    if (entry.is === 'made') {
      const { responseId, ...record } = entry.record;
      work.calls.push({ ...record, ...(responseId !== undefined && { responseId }) });
    }
    work.isInFlight = entry.is === 'begun' || (entry.is === 'made' && entry.record.outcome === 'error' && work.isInFlight);
  }
  return [...found.values()];
}
