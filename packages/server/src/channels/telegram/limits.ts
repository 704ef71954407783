import type { SendResult, WireClock } from '../port.ts';

/** So many chats that are limited at the same time mean that the bot is, not the chats. */
const chatsOfAll = 3;

type NotSent = Extract<SendResult, { readonly is: 'notSent' }>;

/** How long Telegram wants nothing: it says so for a call, not whether it means the chat or the bot. */
export class Limits {
  readonly #clock: WireClock;
  /** Ends by chat. */
  readonly #ends = new Map<number, number>();
  #endOfAll = 0;

  constructor(clock: WireClock) {
    this.#clock = clock;
  }

  /** Returns the evidence for a message that Telegram refused for a while. */
  add(chat: number, { text, retryAfterMs = 1_000 }: NotSent): NotSent {
    const now = this.#clock.monotonic();
    for (const [other, end] of this.#ends) if (end <= now) this.#ends.delete(other);
    this.#ends.set(chat, now + retryAfterMs);
    if (this.#ends.size < chatsOfAll) return { is: 'notSent', text, retryAfterMs };
    this.#endOfAll = Math.max(this.#endOfAll, now + retryAfterMs);
    return { is: 'notSent', text, retryAfterMs, scope: 'instance' };
  }

  /** Returns why a chat gets nothing now: a call before that time makes it longer. */
  refusalOf(chat: number): NotSent | undefined {
    const now = this.#clock.monotonic();
    const own = (this.#ends.get(chat) ?? 0) - now;
    const all = this.#endOfAll - now;
    if (all > 0 && all >= own) return { is: 'notSent', text: 'Telegram accepts nothing from this bot yet', retryAfterMs: all, scope: 'instance' };
    return own > 0 ? { is: 'notSent', text: 'Telegram accepts nothing for this chat yet', retryAfterMs: own } : undefined;
  }
}
