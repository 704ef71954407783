import type { Client } from '@gatehouse/client';
import { changeLast, changeThread, type ChatMessage, createMessage, type Thread } from './chat-thread.ts';
import type { Store } from './store.ts';

/** Delay after a text delta until it is drawn. */
const drawMs = 40;

export interface TurnOptions {
  /** Stops the turn; the text so far stays. */
  readonly signal: AbortSignal;
  /** Receives the reference that the server gave to the conversation. */
  readonly onStored: (ref: string) => void;
}

/** Sends a question and streams its answer into the thread. Failures become part of the answer. */
export async function runTurn(client: Client, thread: Store<Thread>, question: ChatMessage, { signal, onStored }: TurnOptions): Promise<void> {
  const answer = createMessage('assistant', '', { state: 'streaming' });
  changeThread(thread, { messages: [...thread.get().messages, question, answer], running: true });
  const { agentId, sessionKey } = thread.get();
  const attachments = question.attachments.map(({ mediaId }) => ({ mediaId }));
  const text = new StreamedText(thread);
  try {
    const events = client.streamTurn(
      { message: question.text, agentId, sessionKey, ...(attachments.length > 0 && { attachments }) },
      // Without an idempotency key the server stops the turn as soon as the client disconnects, not 30 s later.
      { signal, idempotencyKey: false },
    );
    for await (const event of events) {
      if (event.type === 'token') text.add(event.delta);
      if (event.type !== 'done') continue;
      const { conversationRef, response, failure } = event.result;
      // A failed turn has no text, or the text that arrived before the failure.
      changeLast(thread, {
        text: response === '' ? text.value : response,
        state: failure === undefined ? 'done' : 'failed',
        result: event.result,
      });
      changeThread(thread, { ref: conversationRef });
      onStored(conversationRef);
    }
  } catch (error) {
    changeLast(thread, signal.aborted ? { text: text.value, state: 'stopped' } : { text: text.value, state: 'failed', error });
  }
}

/** Batches text deltas, so that the page isn't redrawn for each one. */
class StreamedText {
  readonly #thread: Store<Thread>;
  #isDrawing = false;
  value = '';

  constructor(thread: Store<Thread>) {
    this.#thread = thread;
  }

  add(delta: string): void {
    this.value += delta;
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    setTimeout(() => {
      this.#isDrawing = false;
      if (this.#thread.get().messages.at(-1)?.state === 'streaming') changeLast(this.#thread, { text: this.value });
    }, drawMs);
  }
}
