import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { embeddedPart, fingerprintOf, isAboutText, type MemoryEmbedder } from './embedder.ts';
import { findFingerprint, markRefused, readUnembedded, storeVectors, type UnembeddedRow } from './embedding-store.ts';

/** Entries and characters of one call: small, since the built-in embedder works on the main thread. */
const batchEntries = 32;
const batchCharacters = 16_384;
const firstPauseMs = 1_000;
const longestPauseMs = 300_000;
/** Minimum pause of an agent without budget. */
const noBudgetMs = 10_000;

export interface EmbeddingQueue extends AsyncDisposable {
  /** Called after something was stored: pending entries are embedded soon. */
  wake(): void;
  /** The fingerprint for new vectors; undefined until the embedder's dimensions are known. */
  fingerprint(): string | undefined;
}

/**
 * Embeds everything without a vector of the current embedder in the background, batch after batch. The rows are the queue:
 * nothing is lost by a restart, and another embedder or model makes everything pending again. After failures it pauses.
 */
export function createEmbeddingQueue(
  deps: { readonly db: Db; readonly clock: Clock; readonly log: Log; readonly embedder: MemoryEmbedder },
  stopped: AbortSignal,
): EmbeddingQueue {
  const { db, clock, log, embedder } = deps;
  /** Fingerprint found in the rows, before the embedder was called. */
  let found: string | undefined;
  /** Agents with a spent budget, and when to retry. */
  const waiting = new Map<string, number>();
  let working: Promise<void> | undefined;
  let again = false;
  let pauseMs = firstPauseMs;
  let cancelPause: (() => void) | undefined;

  const fingerprint = () => (embedder.dimensions === undefined ? found : fingerprintOf(embedder.name, embedder.dimensions));

  function wake(): void {
    again = true;
    if (working !== undefined || cancelPause !== undefined || stopped.aborted) return;
    working = work().finally(() => {
      working = undefined;
      if (again && cancelPause === undefined) wake();
    });
  }

  async function work(): Promise<void> {
    again = false;
    try {
      found ??= await db.read(findFingerprint, { prefix: `${embedder.name}/` });
      while (!stopped.aborted) {
        const waitMs = embedder.breaker.waitMs();
        if (waitMs > 0) return pause(waitMs);
        // Before the first vector its length is unknown: then nothing has one.
        const rows = await db.read(readUnembedded, {
          fingerprint: fingerprint() ?? fingerprintOf(embedder.name, 0),
          limit: batchEntries,
          except: withoutBudget(),
        });
        if (stopped.aborted) return;
        const [first] = rows;
        if (first === undefined) return waiting.size === 0 ? undefined : pause(Math.min(...waiting.values()) - clock.monotonic());
        try {
          await embedRows(firstOf(rows));
        } catch (error) {
          if (!(error instanceof AppError) || error.code !== 'rate_limited') throw error;
          // Other agents have separate budgets.
          log.warn(
            { err: error, agentId: first.agentId },
            'Delaying vectors of memories: the budget is spent; memories are found by terms meanwhile',
          );
          waiting.set(first.agentId, clock.monotonic() + Math.min(Math.max(error.details.retryAfterMs ?? 0, noBudgetMs), longestPauseMs));
          continue;
        }
        pauseMs = firstPauseMs;
      }
    } catch (error) {
      if (stopped.aborted) return;
      log.warn({ err: error, pauseMs }, 'Delaying vectors of memories: embedding failed; memories are found by terms meanwhile');
      pause(pauseMs);
      pauseMs = Math.min(longestPauseMs, pauseMs * 3);
    }
  }

  async function embedRows(rows: readonly UnembeddedRow[]): Promise<void> {
    const [first] = rows;
    if (first === undefined) return;
    const { agentId, principalId } = first;
    try {
      const vectors = await embedder.embedTexts({ agentId, principalId, texts: rows.map(({ content }) => embeddedPart(content)), signal: stopped });
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
          stopped.throwIfAborted();
          await embedRows([row]);
        }
        return;
      }
      log.warn({ err: error, agentId }, 'A memory stays without a vector: the embedder refuses it');
      await db.write(markRefused, { ...first, fingerprint: fingerprint() ?? fingerprintOf(embedder.name, 0) });
    }
  }

  function pause(ms: number): void {
    cancelPause?.();
    cancelPause = clock.after(ms, () => {
      cancelPause = undefined;
      wake();
    });
  }

  function withoutBudget(): string[] {
    const now = clock.monotonic();
    for (const [agentId, untilMs] of waiting) if (untilMs <= now) waiting.delete(agentId);
    return [...waiting.keys()];
  }

  return {
    wake,
    fingerprint,
    async [Symbol.asyncDispose]() {
      cancelPause?.();
      await working;
    },
  };
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
