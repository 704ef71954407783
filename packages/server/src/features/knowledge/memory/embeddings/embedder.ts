import { hash } from 'node:crypto';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { AppError } from '../../../../kernel/app-error.ts';
import { ModelError } from '../../../../llm/model.ts';
import type { ModelWork } from '../../../access/budgets/api.ts';
import { createEmbeddingBreaker, type EmbeddingBreaker } from './embedding-breaker.ts';
import { cacheVector, readCachedVector } from './embedding-cache-store.ts';
import { calibrate, type Calibration, defaultCalibration, hashingCalibration, referenceTexts } from './relevance.ts';
import { queryCharacters } from '../recall/text-query.ts';
import { normalized, toBytes, toFloats } from './vector-signs.ts';

/** Longest time that a search waits for the vector of its query. */
const queryWaitMs = 1_500;
/** Vectors of queries in memory. */
export const maxMemoryVectors = 2_000;
/** Changes of vector length accepted from an embedder while the daemon runs: each makes all entries be embedded again. */
const maxLengths = 3;
/** Concurrent queries of the embedder; further ones are searched by terms. */
const maxQueries = 8;

export interface EmbedderDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** The configured embedder; undefined: only terms are searched. */
  readonly embedder: { readonly provider: string; readonly model: string } | undefined;
  readonly embed: ModelWork['embed'];
}

export interface QueryText {
  readonly text: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | undefined;
  /** Whether the database may keep its vector. */
  readonly keep: boolean;
  /** Milliseconds that the caller waits for it. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
}

/** The embedder with a query cache and a circuit breaker. */
export interface MemoryEmbedder {
  /** `provider/model`. */
  readonly name: string;
  readonly breaker: EmbeddingBreaker;
  readonly cache: { readonly entries: number; readonly hits: number; readonly misses: number; clear(): void };
  /** Length of its vectors; undefined before the first. */
  readonly dimensions: number | undefined;
  /** Mapping from cosine to relevance; learned with the first vector of a query. */
  readonly calibration: Calibration;
  /** Returns a unit vector; undefined on failure or timeout. */
  queryVector(query: QueryText): Promise<Float32Array | undefined>;
  /** Embeds entries, without the cache. Fails as `ModelWork.embed` does. */
  embedTexts(work: Parameters<ModelWork['embed']>[0]): Promise<readonly Float32Array[]>;
}

/** Identifies embedder and length; vectors of two fingerprints cannot be compared. */
export const fingerprintOf = (name: string, dimensions: number) => `${name}/${dimensions}`;

/** Only the beginning of a long text is embedded. */
export const embeddedPart = (text: string) => text.slice(0, queryCharacters).toWellFormed();

/** Errors caused by the text or the budget, which say nothing about the health of the embedder. */
export function isAboutText(error: unknown): boolean {
  return error instanceof ModelError && error.possibly === undefined && (error.kind === 'bad_request' || error.kind === 'context_length');
}

const knownCalibration = (provider: string | undefined): Calibration | undefined => (provider === 'hashing' ? hashingCalibration : undefined);

/** `onLength` is called when its vectors change their length. */
export function createMemoryEmbedder(deps: EmbedderDeps, stopped: AbortSignal, onLength: () => void): MemoryEmbedder | undefined {
  const { db, clock, log, embedder } = deps;
  if (embedder === undefined) return undefined;
  const name = `${embedder.provider}/${embedder.model}`;
  const breaker = createEmbeddingBreaker(clock);
  /** Least recently used first. */
  const vectors = new Map<string, Float32Array>();
  const lengths = new Set<number>();
  let dimensions: number | undefined;
  /** Learned with the first query, and again for vectors of another length. */
  let calibration = knownCalibration(embedder.provider);
  let hits = 0;
  let misses = 0;
  let running = 0;

  function keepInMemory(key: string, vector: Float32Array): void {
    vectors.delete(key);
    vectors.set(key, vector);
    if (vectors.size <= maxMemoryVectors) return;
    for (const oldest of vectors.keys()) {
      vectors.delete(oldest);
      return;
    }
  }

  async function embedTexts(work: Parameters<ModelWork['embed']>[0]): Promise<readonly Float32Array[]> {
    try {
      const { vectors: made } = await deps.embed(work);
      if (made.length !== work.texts.length) throw new ModelError('bad_response', `expected ${work.texts.length} embeddings, got ${made.length}`);
      checkLength(made[0]?.length ?? 0);
      breaker.succeeded();
      return made;
    } catch (error) {
      if (error instanceof ModelError && error.kind !== 'aborted' && !isAboutText(error)) breaker.failed();
      throw error;
    }
  }

  /** A return to an earlier length would have everything embedded repeatedly. */
  function checkLength(length: number): void {
    if (length === dimensions) return;
    if (lengths.has(length) || lengths.size >= maxLengths)
      throw new ModelError('bad_response', `expected embeddings of ${dimensions} numbers, got ${length}`);
    lengths.add(length);
    dimensions = length;
    calibration = knownCalibration(embedder?.provider);
    onLength();
  }

  const isCurrent = (vector: Float32Array) => dimensions === undefined || vector.length === dimensions;

  async function fetchVector(
    { text, keep, waitMs: _wait, signal: _signal, ...about }: QueryText,
    textHash: Uint8Array,
    key: string,
  ): Promise<Float32Array | undefined> {
    const stored = keep ? await db.read(readCachedVector, { fingerprint: name, textHash }) : undefined;
    const known = stored === undefined || !isCurrent(toFloats(stored)) ? undefined : toFloats(stored);
    if (known === undefined) misses += 1;
    else hits += 1;
    // The first call for a query also embeds the reference texts.
    const references = calibration === undefined ? referenceTexts : [];
    const texts = known === undefined ? [text, ...references] : references;
    let vector = known;
    if (texts.length > 0) {
      const { conversationRef, ...owner } = about;
      const made = await embedTexts({ ...owner, ...(conversationRef !== undefined && { conversationRef }), texts, signal: stopped });
      const [first, ...others] = known === undefined ? made : [known, ...made];
      vector = known ?? normalized(first ?? new Float32Array(1));
      if (others.length > 0) calibration = calibrate(others.map(normalized));
    }
    if (vector === undefined) return undefined;
    keepInMemory(key, vector);
    if (keep)
      db.telemetry(cacheVector, { fingerprint: name, textHash, vector: toBytes(vector), usedAtMs: clock.ageNow() }).catch((error: unknown) => {
        if (!stopped.aborted) log.debug({ err: error }, 'Failed to cache the vector of a query');
      });
    return vector;
  }

  return {
    name,
    breaker,
    get dimensions() {
      return dimensions;
    },
    cache: {
      get entries() {
        return vectors.size;
      },
      get hits() {
        return hits;
      },
      get misses() {
        return misses;
      },
      clear: () => vectors.clear(),
    },
    get calibration() {
      return calibration ?? defaultCalibration;
    },
    embedTexts,
    async queryVector(query) {
      const text = embeddedPart(query.text);
      // Private to its owner: from a hit others would learn what was asked.
      const textHash = hash('sha256', JSON.stringify([query.agentId, query.principalId, text]), 'buffer');
      const key = textHash.toString('base64');
      const known = vectors.get(key);
      if (known !== undefined && isCurrent(known)) {
        hits += 1;
        keepInMemory(key, known);
        return known;
      }
      if (running >= maxQueries || breaker.waitMs() > 0) return undefined;
      running += 1;
      // Continues when nobody waits any more, so that the next caller finds it.
      const fetching = fetchVector({ ...query, text }, textHash, key).finally(() => (running -= 1));
      return bounded(fetching, query.signal, query.waitMs ?? queryWaitMs);
    },
  };

  async function bounded(fetching: Promise<Float32Array | undefined>, signal: AbortSignal, waitMs: number): Promise<Float32Array | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const giveUp = () => resolve(undefined);
    const cancel = clock.after(waitMs, giveUp);
    signal.addEventListener('abort', giveUp);
    try {
      return await Promise.race([fetching.catch(explain), late]);
    } finally {
      cancel();
      signal.removeEventListener('abort', giveUp);
    }
  }

  function explain(error: unknown): undefined {
    if (stopped.aborted) return;
    const why = error instanceof AppError || error instanceof ModelError ? error.message : error;
    log.warn({ err: why }, 'Searching memories by terms alone: the query could not be embedded');
  }
}
