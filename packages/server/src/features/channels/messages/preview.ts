import type { Adapter, OutgoingPart, Place } from '../../../channels/port.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { type JsonFragment, textOf } from '../../../kernel/json-fragment.ts';
import { settledWithin, sleep } from '../../../kernel/timers.ts';
import type { TurnSink } from '../../../runtime/turn.ts';

/** Between two edits; platforms limit them. */
const everyMs = 1_000;
/** Time that a send or edit under way has when the answer is complete. */
const endMs = 5_000;
/** Text that is kept for it; the complete answer has its own way. */
const maxText = 65_536;

export interface PreviewOptions {
  readonly adapter: Adapter;
  readonly place: Place;
  /** Key of the send. */
  readonly key: string;
  /** Message of an earlier run of the turn. */
  readonly messageId: string | undefined;
  readonly clock: Clock;
  /** Returns what is shown of an answer that is not complete. */
  readonly render: (text: string) => Promise<Pick<OutgoingPart, 'text' | 'markup'>>;
  /** Stores that a message is about to be sent. */
  readonly begin: () => Promise<void>;
  /** Stores the message, which the complete answer replaces. */
  readonly sent: (messageId: string) => Promise<void>;
}

/** Shows an answer while it is written: one message that is edited. Failures end the preview and nothing else. */
export class Preview implements TurnSink {
  readonly #options: PreviewOptions;
  readonly #stopping = new AbortController();
  #text = '';
  #shown = '';
  #messageId: string | undefined;
  #running: Promise<void> | undefined;

  constructor(options: PreviewOptions) {
    this.#options = options;
    this.#messageId = options.messageId;
  }

  text(fragment: JsonFragment): void {
    if (this.#text.length < maxText) this.#text += textOf(fragment);
    this.#running ??= this.#run().catch(() => {});
  }

  flush(): boolean {
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  /** Ends the preview; returns the message that the answer replaces. */
  async end(): Promise<string | undefined> {
    this.#stopping.abort();
    if (this.#running !== undefined) await settledWithin(this.#options.clock, endMs, [this.#running]);
    return this.#messageId;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    for (let waitMs: number | undefined = everyMs; waitMs !== undefined && !signal.aborted;) {
      await sleep(clock, waitMs, signal);
      if (signal.aborted) return;
      waitMs = this.#text === this.#shown ? everyMs : await this.#show(this.#text);
    }
  }

  /** Returns the time until the next edit; undefined when there is none. */
  async #show(text: string): Promise<number | undefined> {
    const { adapter, place, key, render, begin, sent } = this.#options;
    const { signal } = new AbortController();
    const part = await render(text);
    this.#shown = text;
    if (this.#messageId !== undefined) {
      const act = await adapter.edit?.({ ...place, messageId: this.#messageId }, part, { signal });
      if (act?.is === 'done') return everyMs;
      return act?.kind === 'rate_limited' ? Math.max(everyMs, act.retryAfterMs ?? 0) : undefined;
    }
    await begin();
    const result = await adapter.send({ ...place, ...part }, { key, signal });
    if (result.is !== 'sent' || result.platformId === undefined) return undefined;
    this.#messageId = result.platformId;
    await sent(result.platformId);
    return everyMs;
  }
}
