import type { Style } from '../render/paint.ts';

/** A question that is answered with one key. */
export interface Choice {
  /** Explains what is asked; plain text. */
  readonly lines: readonly string[];
  readonly options: readonly { readonly key: string; readonly label: string }[];
}

/** An answer while it arrives. */
export interface AnswerView {
  add(text: string): void;
  /** Ends the text so far: what follows, such as a tool call, comes after it. */
  pause(): void;
  end(): void;
}

/** How the chat meets a person: a screen that is redrawn, or plain lines. */
export interface ChatView extends Disposable {
  /** Yields the messages of the person in order, also those written during an answer; ends when the person leaves. */
  messages(): AsyncIterable<string>;
  /** Messages that were written and not taken yet. */
  readonly waiting: number;
  /** Called when the person wants the answer to stop; returns whether something was stopped. */
  onStop: () => boolean;
  /** Called with each message before it is queued; returns true when it is not for the queue. */
  onMessage: (text: string) => boolean;
  /** Completes the text of a message. */
  complete: (before: string) => Promise<readonly string[]> | readonly string[];
  /** Prints lines of the program. */
  note(text: string, style?: Style): void;
  answer(): AnswerView;
  /** Shows what happens now, with the time since; undefined clears it. */
  activity(text: string | undefined): void;
  /** Shows the newest reasoning of the model, in a line that passes. */
  thinking(text: string | undefined): void;
  /** Asks one question at a time; undefined when the signal was aborted or the person left. */
  choose(choice: Choice, signal: AbortSignal): Promise<string | undefined>;
  /** Puts a message into the editor that could not be sent. */
  restore(text: string): void;
}

/** Messages in the order in which they were written. */
export class MessageQueue {
  readonly #waiting: string[] = [];
  #isOver = false;
  #changed = Promise.withResolvers<void>();

  get size(): number {
    return this.#waiting.length;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  push(text: string): void {
    this.#waiting.push(text);
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** Yields what is written until the end; `onWait` is called before each wait. */
  async *read(onWait: () => void = () => undefined): AsyncGenerator<string, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#isOver) return;
      else {
        onWait();
        await this.#changed.promise;
      }
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
