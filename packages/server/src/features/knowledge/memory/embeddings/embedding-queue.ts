import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { sleep } from '../../../../kernel/timers.ts';
import { embeddedPart, fingerprintOf, isAboutText, type MemoryEmbedder } from './embedder.ts';
import { findFingerprint, markRefused, readUnembedded, storeVectors, type UnembeddedRow } from './embedding-store.ts';

/** Entries and characters of one call: small, since the built-in embedder works on the main thread. */
const batchEntries = 32;
const batchCharacters = 16_384;
const firstPauseMs = 1_000;
const longestPauseMs = 300_000;
/** Minimum pause of an agent without budget. */
const noBudgetMs = 10_000;

interface QueueDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly embedder: MemoryEmbedder;
}

/**
 * Embeds everything without a vector of the current embedder in the background, batch after batch. The rows are the queue:
 * nothing is lost by a restart, and another embedder or model makes everything pending again. After failures it pauses.
 */
export class EmbeddingQueue implements AsyncDisposable {
  readonly #deps: QueueDeps;
  readonly #stopped: AbortSignal;
  /** Fingerprint found in the rows, before the embedder was called. */
  #found: string | undefined;
  /** Agents with a spent budget, and when to retry. */
  readonly #waiting = new Map<string, number>();
  #working: Promise<void> | undefined;
  #again = false;
  #pauseMs = firstPauseMs;

  /** Abort `stopped` before disposing of the queue. */
  constructor(deps: QueueDeps, stopped: AbortSignal) {
    this.#deps = deps;
    this.#stopped = stopped;
  }

  /** The fingerprint for new vectors; undefined until the embedder's dimensions are known. */
  get fingerprint(): string | undefined {
    const { name, dimensions } = this.#deps.embedder;
    return dimensions === undefined ? this.#found : fingerprintOf(name, dimensions);
  }

  /** Call after something was stored: pending entries are embedded soon. */
  wake(): void {
    this.#again = true;
    if (!this.#stopped.aborted) this.#working ??= this.#work();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    while (this.#again && !this.#stopped.aborted) {
      this.#again = false;
      const pauseMs = await this.#embedAll();
      if (pauseMs === undefined) continue;
      await sleep(this.#deps.clock, pauseMs, this.#stopped);
      this.#again = true;
    }
    // At once, so that no wake is lost after the last check.
    this.#working = undefined;
  }

  /** Embeds until nothing is pending, or returns how long to pause. */
  async #embedAll(): Promise<number | undefined> {
    const { db, log, embedder } = this.#deps;
    try {
      this.#found ??= await db.read(findFingerprint, { prefix: `${embedder.name}/` });
      while (!this.#stopped.aborted) {
        const breakerMs = embedder.breaker.waitMs();
        if (breakerMs > 0) return breakerMs;
        const rows = await db.read(readUnembedded, { fingerprint: this.#currentFingerprint, limit: batchEntries, except: this.#withoutBudget() });
        if (this.#stopped.aborted) return undefined;
        if (rows.length === 0) return this.#waiting.size === 0 ? undefined : Math.min(...this.#waiting.values()) - this.#deps.clock.monotonic();
        if (await this.#embedWithinBudget(firstOf(rows))) this.#pauseMs = firstPauseMs;
      }
      return undefined;
    } catch (error) {
      if (this.#stopped.aborted) return undefined;
      const pauseMs = this.#pauseMs;
      log.warn({ err: error, pauseMs }, 'Delaying vectors of memories: embedding failed; memories are found by terms meanwhile');
      this.#pauseMs = Math.min(longestPauseMs, pauseMs * 3);
      return pauseMs;
    }
  }

  /** False when the budget of the agent is spent; other agents have separate budgets. */
  async #embedWithinBudget(rows: readonly UnembeddedRow[]): Promise<boolean> {
    try {
      await this.#embedRows(rows);
      return true;
    } catch (error) {
      const [first] = rows;
      if (first === undefined || !(error instanceof AppError) || error.code !== 'rate_limited') throw error;
      const about = { err: error, agentId: first.agentId };
      this.#deps.log.warn(about, 'Delaying vectors of memories: the budget is spent; memories are found by terms meanwhile');
      const waitMs = Math.min(Math.max(error.details.retryAfterMs ?? 0, noBudgetMs), longestPauseMs);
      this.#waiting.set(first.agentId, this.#deps.clock.monotonic() + waitMs);
      return false;
    }
  }

  async #embedRows(rows: readonly UnembeddedRow[]): Promise<void> {
    const { db, log, embedder } = this.#deps;
    const [first] = rows;
    if (first === undefined) return;
    const { agentId, principalId } = first;
    try {
      const texts = rows.map(({ content }) => embeddedPart(content));
      const vectors = await embedder.embedTexts({ agentId, principalId, texts, signal: this.#stopped });
      const dimensions = vectors[0]?.length ?? 0;
      await db.write(storeVectors, {
        fingerprint: fingerprintOf(embedder.name, dimensions),
        rows: rows.flatMap(({ seq, updatedAtMs }, index) => {
          const vector = vectors[index];
          return vector === undefined ? [] : [{ seq, updatedAtMs, vector }];
        }),
      });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (rows.length > 1) {
        for (const row of rows) {
          this.#stopped.throwIfAborted();
          await this.#embedRows([row]);
        }
        return;
      }
      log.warn({ err: error, agentId }, 'A memory stays without a vector: the embedder refuses it');
      await db.write(markRefused, { ...first, fingerprint: this.#currentFingerprint });
    }
  }

  /** Before the first vector its length is unknown: then nothing has one. */
  get #currentFingerprint(): string {
    return this.fingerprint ?? fingerprintOf(this.#deps.embedder.name, 0);
  }

  #withoutBudget(): string[] {
    const now = this.#deps.clock.monotonic();
    for (const [agentId, untilMs] of this.#waiting) if (untilMs <= now) this.#waiting.delete(agentId);
    return [...this.#waiting.keys()];
  }
}

/** Returns as many as one call accepts, at least one. */
function firstOf(rows: readonly UnembeddedRow[]): readonly UnembeddedRow[] {
  let characters = 0;
  const end = rows.findIndex(({ content }, index) => {
    characters += Math.min(content.length, batchCharacters);
    return index > 0 && characters > batchCharacters;
  });
  return end === -1 ? rows : rows.slice(0, end);
}

/** Whether a retry is pointless: the text is wrong for the embedder, or its agent is gone. */
function isRefusal(error: unknown): boolean {
  return isAboutText(error) || (error instanceof AppError && error.code === 'not_found');
}
