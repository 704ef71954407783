import type { RatePlan } from '../../../channels/port.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { sleep } from '../../../kernel/timers.ts';

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Conversations whose buckets are kept; one that is forgotten begins full. */
const maxConversations = 1_000;

/** The rate plan of an instance: one bucket for all of it, and one for each conversation. */
export class TokenBuckets {
  readonly #plan: RatePlan;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #all: Bucket;
  readonly #conversations = new Map<string, Bucket>();

  constructor(plan: RatePlan, clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#plan = plan;
    this.#clock = clock;
    this.#all = { tokens: plan.burst, filledAt: clock.monotonic() };
  }

  /** Resolves when a message to this conversation may be sent, or `signal` aborts. */
  async take(conversation: string, signal: AbortSignal): Promise<void> {
    const { perConversation } = this.#plan;
    if (perConversation !== undefined) await this.#takeFrom(this.#of(conversation, perConversation.burst), perConversation, signal);
    await this.#takeFrom(this.#all, this.#plan, signal);
  }

  async #takeFrom(bucket: Bucket, { burst, perSecond }: Pick<RatePlan, 'burst' | 'perSecond'>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const nowMs = this.#clock.monotonic();
      bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.filledAt) * perSecond) / 1_000);
      bucket.filledAt = nowMs;
      if (bucket.tokens >= 1) {
        bucket.tokens -= 1;
        return;
      }
      await sleep(this.#clock, ((1 - bucket.tokens) * 1_000) / perSecond, signal);
    }
  }

  #of(conversation: string, burst: number): Bucket {
    const found = this.#conversations.get(conversation) ?? { tokens: burst, filledAt: this.#clock.monotonic() };
    this.#conversations.delete(conversation);
    this.#conversations.set(conversation, found);
    for (const oldest of this.#conversations.keys()) {
      if (this.#conversations.size <= maxConversations) break;
      this.#conversations.delete(oldest);
    }
    return found;
  }
}
