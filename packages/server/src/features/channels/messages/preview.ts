import type { Adapter, OutgoingPart, Place, SendResult } from '../../../channels/port.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { type JsonFragment, textOf } from '../../../kernel/json-fragment.ts';
import { settledWithin, sleep } from '../../../kernel/timers.ts';
import type { TurnSink } from '../../../runtime/turn.ts';

/** Between two edits; platforms limit them. */
const everyMs = 1_000;
/** Time that a send or edit under way has when the answer is complete. */
const endMs = 5_000;
/** Between two look-ups of a send whose answer was lost. */
const findEveryMs = 5_000;
/** Text that is kept for it; the complete answer has its own way. */
const maxText = 65_536;

export interface PreviewOptions {
  readonly adapter: Adapter;
  readonly place: Place;
  /** Key of the send. */
  readonly key: string;
  /** Message of an earlier run of the turn; empty when it may have been sent. */
  readonly messageId: string | undefined;
  /** How long after a send with a lost answer the same key may be sent again, where the platform knows its keys again. */
  readonly keyWindowMs?: number | undefined;
  /** Time before which no preview was sent. */
  readonly sinceMs: number;
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
  /** A message was sent, and its id is not known. */
  #isLost: boolean;
  #wasAbsent = false;
  /** When it may have been sent first. */
  #lostSinceMs: number;
  #running: Promise<void> | undefined;

  constructor(options: PreviewOptions) {
    this.#options = options;
    const { messageId, sinceMs } = options;
    this.#messageId = messageId === '' ? undefined : messageId;
    this.#isLost = messageId === '';
    this.#lostSinceMs = sinceMs;
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

  /** Ends the preview; returns the message that the answer replaces, empty when a part of the answer may be in the chat that nothing can change. */
  async end(): Promise<string | undefined> {
    this.#stopping.abort();
    if (this.#running !== undefined) await settledWithin(this.#options.clock, endMs, [this.#running]);
    if (this.#isLost) await settledWithin(this.#options.clock, endMs, [this.#find().catch(() => {})]);
    return this.#isLost ? '' : this.#messageId;
  }

  /** Returns the time until it is looked for again; undefined when that would find nothing. */
  async #findAgain(): Promise<number | undefined> {
    const { adapter, keyWindowMs = 0 } = this.#options;
    if (adapter.lookUp === undefined && keyWindowMs === 0) return undefined;
    await this.#find();
    return findEveryMs;
  }

  /** Finds out what became of a send whose answer was lost. */
  async #find(): Promise<void> {
    const { adapter, place, key, keyWindowMs = 0, clock, render } = this.#options;
    const { signal } = new AbortController();
    const part = { ...place, ...(await render(this.#shown === '' ? this.#text : this.#shown)) };
    const ageMs = clock.now() - this.#lostSinceMs;
    if (ageMs >= 0 && ageMs < keyWindowMs && part.text.trim() !== '') return this.#keep(await adapter.send(part, { key, signal }));
    const found = await adapter.lookUp?.(part, { key, sinceMs: this.#lostSinceMs, signal });
    if (found?.is === 'found' && found.platformId !== undefined) await this.#keep({ is: 'sent', platformId: found.platformId });
    // A history may be late: only a second look-up shows that it was not sent.
    if (found?.is === 'absent' && this.#wasAbsent) this.#isLost = false;
    this.#wasAbsent = found?.is === 'absent';
  }

  async #keep(result: SendResult): Promise<void> {
    if (result.is === 'ambiguous') this.#isLost = true;
    else if (result.is === 'sent' && result.platformId !== undefined) {
      this.#messageId = result.platformId;
      this.#isLost = false;
      await this.#options.sent(result.platformId);
    }
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    for (let waitMs: number | undefined = everyMs; waitMs !== undefined && !signal.aborted;) {
      await sleep(clock, waitMs, signal);
      if (signal.aborted) return;
      if (this.#isLost) waitMs = await this.#findAgain();
      else waitMs = this.#text === this.#shown ? everyMs : await this.#show(this.#text);
    }
  }

  /** Returns the time until the next edit; undefined when there is none. */
  async #show(text: string): Promise<number | undefined> {
    const { adapter, place, key, render, begin, clock } = this.#options;
    const { signal } = new AbortController();
    const part = await render(text);
    this.#shown = text;
    if (this.#messageId !== undefined) {
      const act = await adapter.edit?.({ ...place, messageId: this.#messageId }, part, { signal });
      if (act?.is === 'done') return everyMs;
      return act?.kind === 'rate_limited' ? Math.max(everyMs, act.retryAfterMs ?? 0) : undefined;
    }
    await begin();
    this.#lostSinceMs = clock.now();
    const result = await adapter.send({ ...place, ...part }, { key, signal });
    await this.#keep(result);
    return result.is === 'sent' || result.is === 'ambiguous' ? everyMs : undefined;
  }
}
