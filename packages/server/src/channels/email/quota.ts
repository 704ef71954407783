const windowMs = 60 * 60_000;
const most = 10;
const maxSenders = 1_000;

/**
 * Counts the mails of each sender: at most ten an hour are received, so that two programs that answer each other stop. Senders that were silent for
 * longest are forgotten first.
 */
export class Quota {
  readonly #senders = new Map<string, readonly number[]>();

  /** Counts a mail; returns whether it is one too many. */
  isExceeded(sender: string, nowMs: number): boolean {
    const recent = (this.#senders.get(sender) ?? []).filter((atMs) => nowMs - atMs < windowMs);
    const isFull = recent.length >= most;
    this.#senders.delete(sender);
    this.#senders.set(sender, isFull ? recent : [...recent, nowMs]);
    const [oldest] = this.#senders.keys();
    if (this.#senders.size > maxSenders && oldest !== undefined) this.#senders.delete(oldest);
    return isFull;
  }
}
