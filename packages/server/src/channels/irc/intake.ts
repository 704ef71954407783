import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, ReceivedMessage, Sink } from '../port.ts';

/** Messages not yet stored; beyond, nothing is read. */
const most = 256;
const takenAtOnce = 64;
const againMs = 1_000;

/** Messages on their way into the storage, in their order. IRC sends nothing again: what cannot be stored now is tried until it can. */
export class Intake {
  readonly #deps: Pick<AdapterDeps<unknown>, 'clock' | 'log'>;
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  readonly #onRoom: () => void;
  readonly #waiting: ReceivedMessage[] = [];
  #storing: Promise<void> | undefined;

  constructor(deps: Pick<AdapterDeps<unknown>, 'clock' | 'log'>, sink: Sink, signal: AbortSignal, onRoom: () => void) {
    this.#deps = deps;
    this.#sink = sink;
    this.#signal = signal;
    this.#onRoom = onRoom;
  }

  get isFull(): boolean {
    return this.#waiting.length >= most;
  }

  add(message: ReceivedMessage): void {
    this.#waiting.push(message);
    this.#storing ??= this.#store().finally(() => (this.#storing = undefined));
  }

  /** Resolves when nothing waits any more: all is stored, or the signal aborted and the storage refused once more. */
  async settled(): Promise<void> {
    await this.#storing;
  }

  async #store(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, takenAtOnce);
      try {
        await this.#sink.take(batch);
        this.#waiting.splice(0, batch.length);
        this.#onRoom();
      } catch (error) {
        const { log } = this.#deps;
        if (this.#signal.aborted) {
          log.warn({ err: error, lost: this.#waiting.length }, 'Failed to store messages of IRC before the stop');
          this.#waiting.length = 0;
        } else {
          log.warn({ err: error }, 'Failed to store messages of IRC; they are tried again');
          await sleep(this.#deps.clock, againMs, this.#signal);
        }
      }
    }
  }
}
