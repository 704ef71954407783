import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { MemoryQuery } from '../api.ts';
import { fingerprintOf, type MemoryEmbedder } from '../embeddings/embedder.ts';
import { buildIndex, type SignsOf } from '../embeddings/index/index-store.ts';
import { defaultCalibration } from '../embeddings/relevance.ts';
import { type Found, searchMemories } from './search-store.ts';
import { everybody } from '../entries/store.ts';
import { parseTerms } from './text-query.ts';
import { signLength } from '../embeddings/index/vector-signs.ts';

const maxLimit = 100;

/** Searches in the storage's search thread; the index of vectors is built there, by the first search that uses it. */
export function createMemorySearch(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly embedder: MemoryEmbedder | undefined;
  readonly signal: AbortSignal;
}): (query: MemoryQuery) => Promise<Found> {
  const { db, clock, log, embedder } = deps;
  let building = false;

  /** Builds step by step, so that searches get their turn; until it is done they find missing entries by terms. */
  async function build(of: SignsOf): Promise<void> {
    if (building) return;
    building = true;
    try {
      while (!deps.signal.aborted && !(await db.search(buildIndex, of)));
    } catch (error) {
      if (!deps.signal.aborted) log.warn({ err: error }, 'Failed to build the index of memories: searching by terms alone');
    } finally {
      building = false;
    }
  }

  return async (query) => {
    query.signal.throwIfAborted();
    const principalId = query.bookedOn ?? query.principalId ?? everybody;
    const values = await embedder?.queryVector({
      text: query.text,
      agentId: query.agentId,
      principalId,
      conversationRef: query.bookedConversation,
      part: query.part,
      keep: query.keepVector ?? true,
      waitMs: query.vectorWaitMs,
      signal: query.signal,
    });
    query.signal.throwIfAborted();
    const fingerprint = embedder === undefined || values === undefined ? undefined : fingerprintOf(embedder.name, values.length);
    const result = await db.search(searchMemories, {
      filter: {
        agentId: query.agentId,
        principalId: query.principalId,
        types: query.types,
        trust: query.trust,
        tags: query.tags ?? [],
        includeDerivedSources: query.includeDerivedSources ?? true,
        atMs: clock.now(),
      },
      asked: parseTerms(query.text),
      ...(values !== undefined &&
        fingerprint !== undefined && { vector: { fingerprint, values, calibration: embedder?.calibration ?? defaultCalibration } }),
      limit: Math.min(query.limit, maxLimit),
      minScore: query.minScore ?? 0,
    });
    if (!result.complete && values !== undefined && fingerprint !== undefined) void build({ fingerprint, words: signLength(values.length) });
    return result;
  };
}
