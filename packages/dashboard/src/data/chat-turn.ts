import { language, locale } from '../language.ts';
import type { Client } from '@gatehouse/client';
import { changeLast, changeThread, type ChatMessage, createMessage, type Thread } from './chat-thread.ts';
import type { Store } from './store.ts';
import { endReasoning, type TurnItem, withEvent, withText } from './turn-items.ts';
import type { TurnEvent } from './turn-stream.ts';

/** Delay after a change of the answer until it is drawn. */
const drawMs = 40;

export interface TurnOptions {
  /** Stops the turn; the text so far stays. */
  readonly signal: AbortSignal;
  /** Receives the reference that the server gave to the conversation. */
  readonly onStored: (ref: string) => void;
  /** Calls back for each event of the gateway while the turn runs; returns a function that stops it. */
  readonly follow: (onEvent: (event: TurnEvent) => void) => () => void;
  /** Resolves when these events can arrive. */
  readonly ready: () => Promise<void>;
}

/** Sends a question and streams its answer into the thread. Failures become part of the answer. */
export async function runTurn(client: Client, thread: Store<Thread>, question: ChatMessage, options: TurnOptions): Promise<void> {
  const { signal, onStored, follow, ready } = options;
  const answer = createMessage('assistant', '', { state: 'streaming' });
  changeThread(thread, { messages: [...thread.get().messages, question, answer], running: true });
  const { agentId, sessionKey, model, effort } = thread.get();
  const attachments = question.attachments.map(({ mediaId }) => ({ mediaId }));
  const drawn = new StreamedAnswer(thread);
  const stopFollowing = follow((event) => {
    if (isAbout(thread.get(), event.payload)) drawn.hear(event);
  });
  try {
    await ready();
    const events = client.streamTurn(
      {
        message: question.text,
        agentId,
        sessionKey,
        ...(model !== undefined && { model }),
        ...(effort !== undefined && { effort }),
        // English is the default of prompts; the server checks the tag and shows only its language, script and region.
        ...(language !== 'en' && { locale }),
        ...(attachments.length > 0 && { attachments }),
      },
      // Without an idempotency key the server stops the turn as soon as the client disconnects, not 30 s later.
      { signal, idempotencyKey: false },
    );
    for await (const event of events) {
      if (event.type === 'token') drawn.add(event.delta);
      if (event.type !== 'done') continue;
      const { conversationRef, response, failure } = event.result;
      // A failed turn has no text, or the text that arrived before the failure.
      changeLast(thread, {
        ...drawn.end(),
        ...(response !== '' && { text: response }),
        state: failure === undefined ? 'done' : 'failed',
        result: event.result,
      });
      changeThread(thread, { ref: conversationRef });
      onStored(conversationRef);
    }
  } catch (error) {
    changeLast(thread, { ...drawn.end(), ...(signal.aborted ? { state: 'stopped' as const } : { state: 'failed' as const, error }) });
  } finally {
    stopFollowing();
  }
}

/** True for an event of the conversation. Another user may have one with the same key; the reference of a new one is not known yet. */
function isAbout({ agentId, sessionKey, ref }: Thread, payload: unknown): boolean {
  if (typeof payload !== 'object' || payload === null || !('agentId' in payload) || !('sessionKey' in payload)) return false;
  if (payload.agentId !== agentId || payload.sessionKey !== sessionKey) return false;
  return ref === undefined || ('conversationRef' in payload && payload.conversationRef === ref);
}

/** Batches what arrives of an answer, so that the page isn't redrawn for each part of it. */
class StreamedAnswer {
  readonly #thread: Store<Thread>;
  #isDrawing = false;
  #drawnAtMs = Number.NEGATIVE_INFINITY;
  #text = '';
  #items: readonly TurnItem[] = [];

  constructor(thread: Store<Thread>) {
    this.#thread = thread;
  }

  add(delta: string): void {
    this.#text += delta;
    this.#items = withText(this.#items, this.#text.length, Date.now());
    this.#draw();
  }

  hear(event: TurnEvent): void {
    const items = withEvent(this.#items, event, this.#text.length, Date.now());
    if (items === this.#items) return;
    this.#items = items;
    this.#draw();
  }

  end(): Pick<ChatMessage, 'text' | 'items'> {
    this.#items = endReasoning(this.#items, Date.now());
    return { text: this.#text, items: this.#items };
  }

  #draw(): void {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    // What comes first is shown without a delay.
    const delayMs = this.#drawnAtMs + drawMs - performance.now();
    setTimeout(() => {
      this.#isDrawing = false;
      this.#drawnAtMs = performance.now();
      if (this.#thread.get().messages.at(-1)?.state === 'streaming') changeLast(this.#thread, { text: this.#text, items: this.#items });
    }, delayMs);
  }
}
