import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { MediaOperation, ModelWork } from '../../../access/budgets/api.ts';

const hourMs = 3_600_000;
const maxAgents = 10_000;

/** What is counted, by the operation of its model calls: its key of the configuration and its name in a refusal. */
const capped = {
  transcription: { key: 'media.transcription.maxPerHour', what: 'recordings' },
  speech: { key: 'tts.maxPerHour', what: 'spoken texts' },
  imageGeneration: { key: 'imageGen.maxPerHour', what: 'images' },
  vision: { key: 'media.vision.maxPerHour', what: 'image descriptions' },
  video: { key: 'media.video.maxPerHour', what: 'video descriptions' },
} as const satisfies Readonly<Record<MediaOperation, { readonly key: string; readonly what: string }>>;
const operations = ['transcription', 'speech', 'imageGeneration', 'vision', 'video'] as const;

export interface HourlyCapsDeps {
  readonly clock: Clock;
  readonly mediaCalls: ModelWork['mediaCalls'];
}

/** Counts what each agent had made in the last hour, also before a restart. What fails does not count. */
export class HourlyCaps {
  readonly #deps: HourlyCapsDeps;
  /** Times by operation and agent, in order. */
  readonly #made = new Map<string, number[]>();
  #seeding: Promise<void> | undefined;

  constructor(deps: HourlyCapsDeps) {
    this.#deps = deps;
  }

  /** Runs one of the hour; fails with `rate_limited`, and when the next one is possible, at the cap. */
  async count<T>(
    operation: MediaOperation,
    { agentId, maxPerHour }: { readonly agentId: string; readonly maxPerHour: number },
    run: () => Promise<T>,
  ): Promise<T> {
    await this.#seed();
    const release = this.#take(operation, agentId, maxPerHour);
    try {
      return await run();
    } catch (error) {
      release();
      throw error;
    }
  }

  #take(operation: MediaOperation, agentId: string, maxPerHour: number): () => void {
    const nowMs = this.#deps.clock.monotonic();
    if (this.#made.size >= maxAgents) for (const [id, times] of this.#made) if ((times.at(-1) ?? 0) <= nowMs - hourMs) this.#made.delete(id);
    const key = keyOf(operation, agentId);
    const recent = (this.#made.get(key) ?? []).filter((atMs) => atMs > nowMs - hourMs);
    this.#made.set(key, recent);
    const first = recent.at(-maxPerHour);
    if (first !== undefined) {
      const retryAfterMs = Math.ceil(first + hourMs - nowMs);
      const minutes = Math.ceil(retryAfterMs / 60_000);
      const { what, key: setting } = capped[operation];
      throw new AppError('rate_limited', `Rate limit exceeded: max ${maxPerHour} ${what} per hour (${setting}); the next one in ${minutes} min`, {
        retryAfterMs,
      });
    }
    recent.push(nowMs);
    return () => {
      const times = this.#made.get(key);
      const at = times?.lastIndexOf(nowMs) ?? -1;
      if (at !== -1) times?.splice(at, 1);
    };
  }

  /** Reads what an earlier process made, before the first one is counted. A read that fails is repeated with the next call. */
  async #seed(): Promise<void> {
    this.#seeding ??= this.#readRecent();
    try {
      await this.#seeding;
    } catch (error) {
      this.#seeding = undefined;
      throw error;
    }
  }

  async #readRecent(): Promise<void> {
    const { clock, mediaCalls } = this.#deps;
    const nowMs = clock.now();
    const offsetMs = clock.monotonic() - nowMs;
    for (const { operation, agentId, atMs } of await mediaCalls({ operations, sinceMs: nowMs - hourMs, untilMs: nowMs })) {
      const key = keyOf(operation, agentId);
      const times = this.#made.get(key);
      if (times === undefined) this.#made.set(key, [atMs + offsetMs]);
      else times.push(atMs + offsetMs);
    }
  }
}

const keyOf = (operation: string, agentId: string): string => `${operation} ${agentId}`;
