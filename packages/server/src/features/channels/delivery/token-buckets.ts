import type { RatePlan } from '../../../channels/port.ts';
import type { Clock } from '../../../kernel/clock.ts';

type Ticking = Pick<Clock, 'monotonic' | 'after'>;
type Plan = Pick<RatePlan, 'burst' | 'perSecond'>;

/** Grants tokens in the order in which they were asked for, with one timer for all who wait. */
class Bucket {
  readonly #plan: Plan;
  readonly #clock: Ticking;
  readonly #waiting = new Set<() => void>();
  #tokens: number;
  #filledAt: number;
  #heldUntil = 0;
  #cancel: (() => void) | undefined;

  constructor(plan: Plan, clock: Ticking) {
    this.#plan = plan;
    this.#clock = clock;
    this.#tokens = plan.burst;
    this.#filledAt = clock.monotonic();
  }

  async take(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const leave = () => {
      this.#waiting.delete(resolve);
      if (this.#waiting.size === 0) this.#stopTimer();
      resolve();
    };
    signal.addEventListener('abort', leave, { once: true });
    this.#waiting.add(resolve);
    if (this.#cancel === undefined) this.#grant();
    await promise;
    signal.removeEventListener('abort', leave);
  }

  /** Grants nothing for so long. */
  hold(ms: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, this.#clock.monotonic() + ms);
  }

  #grant(): void {
    this.#stopTimer();
    for (const go of this.#waiting) {
      const waitMs = this.#waitMs();
      if (waitMs > 0) {
        this.#cancel = this.#clock.after(waitMs, () => this.#grant());
        return;
      }
      this.#tokens -= 1;
      this.#waiting.delete(go);
      go();
    }
  }

  #stopTimer(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #waitMs(): number {
    const { burst, perSecond } = this.#plan;
    const nowMs = this.#clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#filledAt) * perSecond) / 1_000);
    this.#filledAt = nowMs;
    return Math.max(this.#heldUntil - nowMs, Math.ceil(((1 - this.#tokens) * 1_000) / perSecond));
  }
}

/** Conversations whose buckets are kept; one that is forgotten begins full. */
const maxConversations = 1_000;

/** The rate plan of an instance: one bucket for all of it, and one for each conversation. */
export class TokenBuckets {
  readonly #plan: RatePlan;
  readonly #clock: Ticking;
  readonly #all: Bucket;
  readonly #conversations = new Map<string, Bucket>();

  constructor(plan: RatePlan, clock: Ticking) {
    this.#plan = plan;
    this.#clock = clock;
    this.#all = new Bucket(plan, clock);
  }

  /** Resolves when a message to this conversation may be sent, or `signal` aborts. */
  async take(conversation: string, signal: AbortSignal): Promise<void> {
    const { perConversation } = this.#plan;
    if (perConversation !== undefined) await this.#of(conversation, perConversation).take(signal);
    await this.#all.take(signal);
  }

  /** Nothing is sent for so long, also nothing that was queued before. */
  hold(ms: number): void {
    this.#all.hold(ms);
  }

  #of(conversation: string, plan: Plan): Bucket {
    const found = this.#conversations.get(conversation) ?? new Bucket(plan, this.#clock);
    this.#conversations.delete(conversation);
    this.#conversations.set(conversation, found);
    for (const oldest of this.#conversations.keys()) {
      if (this.#conversations.size <= maxConversations) break;
      this.#conversations.delete(oldest);
    }
    return found;
  }
}
