import { LogLine } from '@gatehouse/contract';
import { parseJson } from './json.ts';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
const maxLines = 500;
const maxChars = 256 * 1024;
/** Longest line that is kept whole; of a longer one only the head is. */
const maxLineChars = 16 * 1024;
const maxMessage = 2000;

/** The newest lines of the log, for those who read them while the daemon runs. */
export type RecentLines = Pick<LogRing, 'newest' | 'listen'>;

export interface LogQuery {
  /** Only lines after this one. */
  readonly afterId?: number | undefined;
  /** Only lines of this level or above. */
  readonly level?: LogLine['level'] | undefined;
  readonly module?: string | undefined;
  /** The newest of them, at most this many. */
  readonly limit: number;
}

/**
 * The newest lines of the log, as they were written: bounded in number and size, and parsed only when somebody reads them. Ids grow, also over
 * restarts when `firstId` is derived from the time of the start.
 */
export class LogRing {
  #lines: { readonly id: number; readonly text: string }[] = [];
  #chars = 0;
  #lastId: number;
  readonly #listeners = new Set<(read: () => LogLine | undefined) => void>();
  #isTelling = false;

  constructor(firstId = 1) {
    this.#lastId = firstId - 1;
  }

  /** Takes a line of JSON, redacted. */
  push(line: string): void {
    const id = (this.#lastId += 1);
    const text = line.length > maxLineChars ? headOf(line) : line;
    this.#lines.push({ id, text });
    this.#chars += text.length;
    while (this.#lines.length > maxLines || this.#chars > maxChars) this.#chars -= this.#lines.shift()?.text.length ?? 0;
    // What a listener logs itself would never end.
    if (this.#listeners.size === 0 || this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (const hear of this.#listeners) hear(() => toLine(id, text));
    } finally {
      this.#isTelling = false;
    }
  }

  /** Calls `hear` with each new line, which it parses if it wants it; returns a function that stops it. */
  listen(hear: (read: () => LogLine | undefined) => void): () => void {
    this.#listeners.add(hear);
    return () => void this.#listeners.delete(hear);
  }

  /** Returns the newest lines that match, oldest first. */
  newest({ afterId = 0, level = 'trace', module, limit }: LogQuery): LogLine[] {
    const least = levels.indexOf(level);
    const found: LogLine[] = [];
    for (const { id, text } of this.#lines.toReversed()) {
      if (id <= afterId || found.length >= limit) break;
      const line = toLine(id, text);
      if (line !== undefined && levels.indexOf(line.level) >= least && (module === undefined || line.module === module)) found.push(line);
    }
    return found.toReversed();
  }
}

function toLine(id: number, text: string): LogLine | undefined {
  const { level, time, module, msg, ...fields } = parseJson(text) as Record<string, unknown>;
  const read = LogLine().safeParse({ id, timestamp: time, level, ...(module !== undefined && { module }), message: msg ?? '', fields });
  return read.success ? read.data : undefined;
}

function headOf(line: string): string {
  const { level, time, module, msg } = parseJson(line) as Record<string, unknown>;
  return JSON.stringify({ level, time, module, msg: String(msg).slice(0, maxMessage), cutFrom: line.length });
}
