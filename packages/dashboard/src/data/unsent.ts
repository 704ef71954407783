import type { Attachment } from './chat-thread.ts';

/** Text and files that were not sent yet. */
export interface Unsent {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

const nothing: Unsent = { text: '', attachments: [] };
const maxKept = 40;

/** Keeps what was not sent, by the key of its thread; forgets the oldest of too many. */
export class UnsentMessages {
  readonly #byThread = new Map<string, Unsent>();

  get(threadKey: string): Unsent {
    return this.#byThread.get(threadKey) ?? nothing;
  }

  keep(threadKey: string, unsent: Unsent): void {
    this.#byThread.delete(threadKey);
    if (unsent.text !== '' || unsent.attachments.length > 0) this.#byThread.set(threadKey, unsent);
    for (const oldest of this.#byThread.keys()) {
      if (this.#byThread.size <= maxKept) break;
      this.#byThread.delete(oldest);
    }
  }
}
