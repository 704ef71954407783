import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';

const hourMs = 3_600_000;
const maxAgents = 10_000;

/** Counts the images of each agent in the last hour; a failed one does not count. */
export class ImageQuota {
  readonly #clock: Clock;
  readonly #made = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one of the hour; fails with `rate_limited` and when the next one is free. Returns how to give it back. */
  take(agentId: string, maxPerHour: number): () => void {
    const nowMs = this.#clock.monotonic();
    if (this.#made.size >= maxAgents) for (const [id, times] of this.#made) if ((times.at(-1) ?? 0) <= nowMs - hourMs) this.#made.delete(id);
    const recent = (this.#made.get(agentId) ?? []).filter((atMs) => atMs > nowMs - hourMs);
    this.#made.set(agentId, recent);
    const first = recent.at(-maxPerHour);
    if (first !== undefined) {
      const retryAfterMs = Math.ceil(first + hourMs - nowMs);
      const minutes = Math.ceil(retryAfterMs / 60_000);
      throw new AppError(
        'rate_limited',
        `Rate limit exceeded: max ${maxPerHour} images per hour (imageGen.maxPerHour); the next one in ${minutes} min`,
        {
          retryAfterMs,
        },
      );
    }
    recent.push(nowMs);
    return () => {
      const times = this.#made.get(agentId);
      const at = times?.indexOf(nowMs) ?? -1;
      if (at !== -1) times?.splice(at, 1);
    };
  }
}
