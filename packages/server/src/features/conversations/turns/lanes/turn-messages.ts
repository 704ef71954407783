import { AppError } from '../../../../kernel/app-error.ts';
import type { TurnSteering } from '../../../../runtime/turn.ts';

interface WaitingMessage {
  readonly text: string;
  readonly taken: () => void;
  readonly refuse: (error: Error) => void;
}

/** Maximum number of messages that are pending for one turn. */
const maxWaiting = 10;

/** Messages of a person to a running turn. They are in memory until the turn takes them. */
export class TurnMessages implements TurnSteering {
  #waiting: WaitingMessage[] = [];
  #isClosed = false;
  /** Whether the turn has taken a message. */
  hasTaken = false;

  /** Resolves once the turn has taken the message; rejects when it ends without it, or when `signal` withdraws the message. */
  async offer(text: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#isClosed) throw notTaken();
    if (this.#waiting.length >= maxWaiting)
      throw new AppError('rate_limited', `${maxWaiting} messages wait for this turn, which is the limit`, { retryAfterMs: 10_000 });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const message: WaitingMessage = { text, taken: resolve, refuse: reject };
    const withdraw = () => {
      this.#waiting = this.#waiting.filter((one) => one !== message);
      reject(new AppError('cancelled', 'The message was withdrawn before the turn took it'));
    };
    this.#waiting.push(message);
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', withdraw);
    }
  }

  take(): { readonly ids: readonly string[]; readonly text: string } | undefined {
    const taken = this.#waiting;
    if (taken.length === 0) return undefined;
    this.#waiting = [];
    this.hasTaken = true;
    for (const message of taken) message.taken();
    return { ids: [], text: taken.map(({ text }) => text).join('\n\n') };
  }

  /** Refuses what waits: the turn has ended. */
  close(): void {
    this.#isClosed = true;
    for (const { refuse } of this.#waiting.splice(0)) refuse(notTaken());
  }
}

function notTaken(): AppError {
  return new AppError('precondition_failed', 'The turn ended before it took the message; send it as the next one');
}
