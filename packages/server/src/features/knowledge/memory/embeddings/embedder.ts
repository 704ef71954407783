import { hash } from 'node:crypto';
import type { PartOfRoot } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { sleep } from '../../../../kernel/timers.ts';
import { AppError } from '../../../../kernel/app-error.ts';
import { ModelError } from '../../../../llm/model.ts';
import type { ModelWork } from '../../../access/budgets/api.ts';
import { createEmbeddingBreaker, type EmbeddingBreaker } from './embedding-breaker.ts';
import { cacheVector, readCachedVector } from './embedding-cache-store.ts';
import { calibrate, type Calibration, defaultCalibration, hashingCalibration, referenceTexts } from './relevance.ts';
import { queryCharacters } from '../recall/text-query.ts';
import { VectorCache } from './vector-cache.ts';
import { normalized, toBytes, toFloats } from './index/vector-signs.ts';

/** Longest time that a search waits for the vector of its query. */
const queryWaitMs = 1_500;
/** Changes of vector length accepted from an embedder while the daemon runs: each makes all entries be embedded again. */
const maxLengths = 3;
/** Concurrent queries of the embedder; further ones are searched by terms. */
const maxQueries = 8;

export interface EmbedderName {
  readonly provider: string;
  readonly model: string;
}

export interface EmbedderDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly embed: ModelWork['embed'];
}

export interface QueryText {
  readonly text: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | undefined;
  readonly part: PartOfRoot | undefined;
  /** Whether the database may keep its vector. */
  readonly keep: boolean;
  /** Milliseconds that the caller waits for it. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
}

/** Identifies embedder and length; vectors of two fingerprints cannot be compared. */
export const fingerprintOf = (name: string, dimensions: number) => `${name}/${dimensions}`;

/** Only the beginning of a long text is embedded. */
export const embeddedPart = (text: string) => text.slice(0, queryCharacters).toWellFormed();

/** Entries of `knowledge:<agent>` are of that agent's folders and sites. */
const payerOf = (owner: string): string => owner.replace(/^knowledge:/, '');

/** Errors caused by the text or the budget, which say nothing about the health of the embedder. */
export function isAboutText(error: unknown): boolean {
  return error instanceof ModelError && error.possibly === undefined && (error.kind === 'bad_request' || error.kind === 'context_length');
}

/** The embedder with a query cache and a circuit breaker. */
export class MemoryEmbedder {
  /** `provider/model`. */
  readonly name: string;
  readonly breaker: EmbeddingBreaker;
  readonly cache = new VectorCache();
  readonly #deps: EmbedderDeps;
  readonly #embedder: EmbedderName;
  readonly #stopped: AbortSignal;
  readonly #onLength: () => void;
  readonly #lengths = new Set<number>();
  #dimensions: number | undefined;
  /** Learned with the first query, and again for vectors of another length. */
  #calibration: Calibration | undefined;
  #running = 0;

  /** `onLength` is called when its vectors change their length. */
  constructor(deps: EmbedderDeps, embedder: EmbedderName, { stopped, onLength }: { readonly stopped: AbortSignal; readonly onLength: () => void }) {
    this.name = `${embedder.provider}/${embedder.model}`;
    this.breaker = createEmbeddingBreaker(deps.clock);
    this.#deps = deps;
    this.#embedder = embedder;
    this.#stopped = stopped;
    this.#onLength = onLength;
    this.#calibration = knownCalibration(embedder);
  }

  /** Length of its vectors; undefined before the first. */
  get dimensions(): number | undefined {
    return this.#dimensions;
  }

  /** Mapping from cosine to relevance; learned with the first vector of a query. */
  get calibration(): Calibration {
    return this.#calibration ?? defaultCalibration;
  }

  /** Embeds entries, without the cache. Fails as `ModelWork.embed` does. */
  async embedTexts(work: Parameters<ModelWork['embed']>[0]): Promise<readonly Float32Array[]> {
    try {
      const { vectors: made } = await this.#deps.embed({ ...work, agentId: payerOf(work.agentId) });
      if (made.length !== work.texts.length) throw new ModelError('bad_response', `expected ${work.texts.length} embeddings, got ${made.length}`);
      this.#checkLength(made[0]?.length ?? 0);
      this.breaker.succeeded();
      return made;
    } catch (error) {
      if (error instanceof ModelError && error.kind !== 'aborted' && !isAboutText(error)) this.breaker.failed();
      throw error;
    }
  }

  /** Returns a unit vector; undefined on failure or timeout. */
  async queryVector(query: QueryText): Promise<Float32Array | undefined> {
    const text = embeddedPart(query.text);
    // Private to its owner: from a hit others would learn what was asked.
    const textHash = hash('sha256', JSON.stringify([query.agentId, query.principalId, text]), 'buffer');
    const key = textHash.toString('base64');
    const known = this.cache.get(key);
    if (known !== undefined && this.#isCurrent(known)) {
      this.cache.hits += 1;
      this.cache.keep(key, known);
      return known;
    }
    if (this.#running >= maxQueries || this.breaker.waitMs() > 0) return undefined;
    this.#running += 1;
    // Continues when nobody waits any more, so that the next caller finds it.
    const fetching = this.#fetch({ ...query, text }, textHash, key).finally(() => (this.#running -= 1));
    return this.#bounded(fetching, query.signal, query.waitMs ?? queryWaitMs);
  }

  /** A return to an earlier length would have everything embedded repeatedly. */
  #checkLength(length: number): void {
    if (length === this.#dimensions) return;
    if (this.#lengths.has(length) || this.#lengths.size >= maxLengths)
      throw new ModelError('bad_response', `expected embeddings of ${this.#dimensions} numbers, got ${length}`);
    this.#lengths.add(length);
    this.#dimensions = length;
    this.#calibration = knownCalibration(this.#embedder);
    this.#onLength();
  }

  #isCurrent(vector: Float32Array): boolean {
    return this.#dimensions === undefined || vector.length === this.#dimensions;
  }

  async #fetch(query: QueryText, textHash: Uint8Array, key: string): Promise<Float32Array | undefined> {
    const { db, clock, log } = this.#deps;
    const stored = query.keep ? await db.read(readCachedVector, { fingerprint: this.name, textHash }) : undefined;
    const known = stored === undefined || !this.#isCurrent(toFloats(stored)) ? undefined : toFloats(stored);
    if (known === undefined) this.cache.misses += 1;
    else this.cache.hits += 1;
    const vector = await this.#vectorOf(query, known);
    if (vector === undefined) return undefined;
    this.cache.keep(key, vector);
    if (query.keep)
      db.telemetry(cacheVector, { fingerprint: this.name, textHash, vector: toBytes(vector), usedAtMs: clock.ageNow() }).catch((error: unknown) => {
        if (!this.#stopped.aborted) log.debug({ err: error }, 'Failed to cache the vector of a query');
      });
    return vector;
  }

  /** Returns the vector of a query. The first call also embeds the reference texts. */
  async #vectorOf(
    { text, agentId, principalId, conversationRef, part }: QueryText,
    known: Float32Array | undefined,
  ): Promise<Float32Array | undefined> {
    const references = this.#calibration === undefined ? referenceTexts : [];
    const texts = known === undefined ? [text, ...references] : references;
    if (texts.length === 0) return known;
    const owner = { agentId, principalId, part, ...(conversationRef !== undefined && { conversationRef }) };
    const made = await this.embedTexts({ ...owner, texts, signal: this.#stopped });
    const [first, ...others] = known === undefined ? made : [known, ...made];
    if (others.length > 0) this.#calibration = calibrate(others.map(normalized));
    return known ?? normalized(first ?? new Float32Array(1));
  }

  async #bounded(fetching: Promise<Float32Array | undefined>, signal: AbortSignal, waitMs: number): Promise<Float32Array | undefined> {
    const done = new AbortController();
    const late = sleep(this.#deps.clock, waitMs, AbortSignal.any([signal, done.signal])).then(() => undefined);
    try {
      return await Promise.race([fetching.catch((error: unknown) => this.#explain(error)), late]);
    } finally {
      done.abort();
    }
  }

  #explain(error: unknown): undefined {
    if (this.#stopped.aborted) return;
    const why = error instanceof AppError || error instanceof ModelError ? error.message : error;
    this.#deps.log.warn({ err: why }, 'Searching memories by terms alone: the query could not be embedded');
  }
}

const knownCalibration = ({ provider }: EmbedderName): Calibration | undefined => (provider === 'hashing' ? hashingCalibration : undefined);
