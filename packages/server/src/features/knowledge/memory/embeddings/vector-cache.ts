/** Maximum number of vectors in memory. */
export const maxMemoryVectors = 2_000;

/** Vectors of recent queries in memory, the least recently used first. */
export class VectorCache {
  readonly #vectors = new Map<string, Float32Array>();
  /** Queries whose vector was known here or in the database. */
  hits = 0;
  misses = 0;

  get entries(): number {
    return this.#vectors.size;
  }

  /** Share of the queries whose vector was known; null before the first. */
  get hitRate(): number | null {
    return this.hits + this.misses === 0 ? null : this.hits / (this.hits + this.misses);
  }

  get(key: string): Float32Array | undefined {
    return this.#vectors.get(key);
  }

  /** Keeps a vector as the most recently used. */
  keep(key: string, vector: Float32Array): void {
    this.#vectors.delete(key);
    this.#vectors.set(key, vector);
    if (this.#vectors.size <= maxMemoryVectors) return;
    for (const oldest of this.#vectors.keys()) {
      this.#vectors.delete(oldest);
      return;
    }
  }

  clear(): void {
    this.#vectors.clear();
  }
}
