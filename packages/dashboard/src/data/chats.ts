import { type Client, GatehouseError } from '@gatehouse/client';
import {
  type Attachment,
  changeThread,
  type ChatMessage,
  createDraft,
  createMessage,
  createQueued,
  createThread,
  lastQuestion,
  type QueuedMessage,
  type Thread,
  toChatMessages,
  withStoredTurns,
} from './chat-thread.ts';
import { chooseModel, chosenModel, type ModelChoice } from './chat-models.ts';
import { runTurn } from './chat-turn.ts';
import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';
import { givenKind } from './turn-items.ts';
import { type TurnEvent, TurnStream } from './turn-stream.ts';
import { type Unsent, UnsentMessages } from './unsent.ts';

const pageSize = 50;
/** The most messages that the server returns at once. */
const maxPage = 200;
const maxThreads = 40;
/** A stopped turn is stored a moment later. */
const findDelaysMs = [300, 1_000, 3_000];

/** Name of the conversation that the server doesn't know yet, for what is unsent in it. */
const newConversation = 'new';

/** Conversations outlive the page that shows them, so an answer continues while another page is open. */
export class ChatStore {
  /** The new conversation that the server doesn't know yet, with its unsent text. */
  readonly draft: Store<Store<Thread>>;
  readonly #client: Client;
  readonly #live: Pick<LiveEvents, 'listen'>;
  readonly #stream: TurnStream;
  readonly #defaultAgentId: string;
  readonly #threads = new Map<string, Store<Thread>>();
  readonly #running = new Map<Store<Thread>, AbortController>();
  readonly #loading = new Map<Store<Thread>, Promise<void>>();
  /** Messages that running turns were asked to take. */
  readonly #giving = new Map<Store<Thread>, Map<string, { readonly giving: Promise<void>; readonly withdrawal: AbortController }>>();
  /** Threads whose answer lacks a message that its turn has taken. */
  readonly #outdated = new Set<Store<Thread>>();
  /** What shows the running turns. */
  readonly #hearing = new Map<Store<Thread>, (event: TurnEvent) => void>();
  readonly #unsent = new UnsentMessages();
  #isClosed = false;

  constructor(client: Client, live: Pick<LiveEvents, 'listen'>, defaultAgentId: string) {
    this.#client = client;
    this.#live = live;
    this.#stream = new TurnStream(client);
    this.#defaultAgentId = defaultAgentId;
    this.draft = createStore(createDraft(defaultAgentId));
  }

  /** Replaces the draft with an empty one, for the default agent unless one is named. */
  begin(agentId = this.#defaultAgentId): void {
    this.#unsent.keep(newConversation, { text: '', attachments: [] });
    this.draft.set(createDraft(agentId));
  }

  /** Returns an existing conversation and loads its newest messages if necessary. */
  open(ref: string): Store<Thread> {
    const known = this.#threads.get(ref);
    const thread = known ?? createThread({ agentId: '', sessionKey: '', ref, loading: true, ...chosenModel(ref) });
    this.#remember(ref, thread);
    if (known === undefined) {
      const loading = this.#load(thread, ref).finally(() => this.#loading.delete(thread));
      this.#loading.set(thread, loading);
    }
    return thread;
  }

  reload(thread: Store<Thread>): void {
    const { ref } = thread.get();
    if (ref !== undefined && !this.#running.has(thread)) void this.#load(thread, ref);
  }

  async loadEarlier(thread: Store<Thread>): Promise<void> {
    const { ref, earlier } = thread.get();
    if (ref === undefined || earlier === 0) return;
    const offset = Math.max(0, earlier - pageSize);
    const { messages } = await this.#loadPage(ref, offset, earlier - offset);
    changeThread(thread, { messages: [...messages, ...thread.get().messages], earlier: offset });
  }

  async send(thread: Store<Thread>, text: string, attachments: readonly Attachment[]): Promise<void> {
    if (this.#running.has(thread)) return changeThread(thread, { queue: [...thread.get().queue, createQueued(text, attachments)] });
    await this.#run(thread, createMessage('user', text, { attachments }));
  }

  /** Chooses the model of the next answers. */
  chooseModel(thread: Store<Thread>, { model, effort }: ModelChoice): void {
    const { ref } = thread.get();
    changeThread(thread, { model, effort });
    if (ref !== undefined) chooseModel(ref, { model, effort });
  }

  /** Passes a queued message to the running turn. It stays in the queue until the turn has taken it. */
  async give(thread: Store<Thread>, key: string): Promise<void> {
    const { queue, agentId, sessionKey, ref } = thread.get();
    const message = queue.find((one) => one.key === key);
    if (message === undefined || message.giving === true || !this.#running.has(thread)) return;
    const withdrawal = new AbortController();
    const giving = this.#client
      .call(
        'session.steer',
        { ...(ref === undefined ? { agentId, sessionKey } : { conversationRef: ref }), message: message.text },
        { signal: withdrawal.signal },
      )
      .then(
        () => {
          changeQueued(thread, key, undefined);
          const hear = this.#hearing.get(thread);
          // The answer may be complete before this reply arrives.
          if (hear === undefined) this.#outdated.add(thread);
          else hear({ kind: givenKind, payload: { agentId, sessionKey, conversationRef: ref, text: message.text } });
        },
        // A turn that has ended meanwhile leaves it in the queue, as the next message.
        (error: unknown) => changeQueued(thread, key, { giving: undefined, refused: isOver(error) ? undefined : error }),
      )
      .finally(() => this.#giving.get(thread)?.delete(key));
    this.#giving.set(thread, (this.#giving.get(thread) ?? new Map()).set(key, { giving, withdrawal }));
    changeQueued(thread, key, { giving: true, refused: undefined });
    await giving;
  }

  /** Removes a message from the queue. */
  unqueue(thread: Store<Thread>, key: string): void {
    this.#giving.get(thread)?.get(key)?.withdrawal.abort();
    changeQueued(thread, key, undefined);
  }

  /** Stops the running answer and sends a queued message at once. */
  async sendNow(thread: Store<Thread>, key: string): Promise<void> {
    const { queue } = thread.get();
    const wanted = queue.find((one) => one.key === key);
    if (wanted === undefined) return;
    changeThread(thread, { queue: [wanted, ...queue.filter((one) => one !== wanted)] });
    if (this.#running.has(thread)) this.stop(thread);
    else await this.#sendNext(thread);
  }

  /** Answers the last question again, in a branch. Returns the reference of the branch; undefined while the question is not stored. */
  async regenerate(thread: Store<Thread>): Promise<string | undefined> {
    if (this.#running.has(thread)) return undefined;
    // The answer is shown a moment before its position is known.
    if (lastQuestion(thread.get())?.question.seq === undefined) await this.#complete(thread);
    const question = lastQuestion(thread.get())?.question;
    const made = question === undefined ? undefined : await this.branch(thread, question);
    if (question === undefined || made === undefined) return undefined;
    const branch = this.open(made);
    this.keepUnsent(branch, { text: '', attachments: [] });
    // Its messages are loaded first, because they would replace the question.
    await this.#loading.get(branch);
    void this.send(branch, question.text, question.attachments);
    return made;
  }

  /** Sends the last question again. */
  async retry(thread: Store<Thread>): Promise<void> {
    const last = lastQuestion(thread.get());
    if (last === undefined || this.#running.has(thread)) return;
    const { messages } = thread.get();
    // A retry replaces the earlier answer, unless that one is complete.
    if (messages.at(-1)?.state !== 'done') changeThread(thread, { messages: messages.slice(0, last.at) });
    const { text, attachments } = last.question;
    await this.#run(thread, createMessage('user', text, { attachments }));
  }

  stop(thread: Store<Thread>): void {
    this.#running.get(thread)?.abort();
  }

  /** Removes the last question and its answer, and returns the question to the message field for editing. */
  editLastQuestion(thread: Store<Thread>): void {
    const last = lastQuestion(thread.get());
    if (last === undefined || this.#running.has(thread)) return;
    changeThread(thread, { messages: thread.get().messages.slice(0, last.at) });
    const { text, attachments } = this.unsent(thread);
    this.keepUnsent(thread, {
      text: [last.question.text, text].filter(Boolean).join('\n\n'),
      attachments: [...last.question.attachments, ...attachments],
    });
  }

  /**
   * Starts a branch at an earlier question, with the question in the message field for editing. Returns the reference of the branch;
   * undefined for a question that is not stored.
   */
  async branch(thread: Store<Thread>, { seq, text, attachments }: ChatMessage): Promise<string | undefined> {
    const { ref } = thread.get();
    if (ref === undefined || seq === undefined) return undefined;
    const made = await this.#client.call('session.fork', { conversationRef: ref, seq: seq - 1 });
    this.keepUnsent(this.open(made.conversationRef), { text, attachments });
    return made.conversationRef;
  }

  /** Adds to the messages of this tab what only the stored ones have. */
  async complete(thread: Store<Thread>): Promise<void> {
    try {
      await this.#complete(thread);
    } catch {
      // It is added after the next turn, or a reload.
    }
  }

  unsent(thread: Store<Thread>): Unsent {
    return this.#unsent.get(nameOf(thread));
  }

  keepUnsent(thread: Store<Thread>, unsent: Unsent): void {
    this.#unsent.keep(nameOf(thread), unsent);
  }

  /** Returns the threads whose messages are loaded, for the search. */
  loaded(): readonly Store<Thread>[] {
    return [...this.#threads.values()];
  }

  forget(ref: string): void {
    this.#threads.delete(ref);
  }

  close(): void {
    this.#isClosed = true;
    for (const abort of this.#running.values()) abort.abort();
    this.#stream.close();
  }

  async #run(thread: Store<Thread>, question: ChatMessage): Promise<void> {
    const abort = new AbortController();
    this.#running.set(thread, abort);
    await runTurn(this.#client, thread, question, {
      signal: abort.signal,
      onStored: (ref) => this.#remember(ref, thread),
      follow: (onEvent) => this.#follow(thread, onEvent),
      ready: () => this.#stream.ready(),
    });
    // What the turn has just taken must not be sent again as the next message.
    await Promise.all([...(this.#giving.get(thread)?.values() ?? [])].map(({ giving }) => giving));
    this.#running.delete(thread);
    changeThread(thread, { running: false });
    const { ref } = thread.get();
    if (ref === undefined) await this.#findRef(thread);
    else if (this.#outdated.delete(thread)) await this.#load(thread, ref);
    // A stopped turn is stored a moment later, and reported then.
    else if (thread.get().messages.at(-1)?.state !== 'stopped') await this.complete(thread);
    // A message that was written after a failure may not make sense any more.
    if (thread.get().messages.at(-1)?.state !== 'failed') await this.#sendNext(thread);
  }

  async #sendNext(thread: Store<Thread>): Promise<void> {
    const [next, ...queue] = thread.get().queue;
    if (next === undefined || this.#isClosed || this.#running.has(thread)) return;
    changeThread(thread, { queue });
    await this.#run(thread, createMessage('user', next.text, { attachments: next.attachments }));
  }

  /** Reports tool calls from the stream of the tab, and what is written meanwhile from one that is open while a turn runs. */
  #follow(thread: Store<Thread>, onEvent: (event: TurnEvent) => void): () => void {
    const stops = [this.#live.listen(onEvent), this.#stream.follow(onEvent)];
    this.#hearing.set(thread, onEvent);
    return () => {
      this.#hearing.delete(thread);
      for (const stop of stops) stop();
    };
  }

  async #complete(thread: Store<Thread>): Promise<void> {
    const { ref, messages } = thread.get();
    if (ref === undefined || messages.every(({ seq }) => seq !== undefined)) return;
    const { page, messages: stored } = await this.#loadPage(ref, messages.findLast(({ seq }) => seq !== undefined)?.seq ?? 0, maxPage);
    if (page.hasMore) return this.reload(thread);
    // Meanwhile another question may have been sent, with the same text.
    const completed = new Map(withStoredTurns(messages, stored).map((message) => [message.key, message]));
    changeThread(thread, { messages: thread.get().messages.map((message) => completed.get(message.key) ?? message) });
  }

  /** Looks up the conversation of a stopped turn: only a completed turn returns its reference. */
  async #findRef(thread: Store<Thread>): Promise<void> {
    const { agentId, sessionKey } = thread.get();
    for (const delayMs of findDelaysMs) {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (this.#isClosed || this.#running.has(thread) || thread.get().ref !== undefined) return;
      try {
        const { session } = await this.#client.call('session.history', { agentId, sessionKey, limit: 1 });
        this.#remember(session.conversationRef, thread);
        changeThread(thread, { ref: session.conversationRef });
        return await this.complete(thread);
      } catch {
        // Not stored yet, or no connection: the conversation starts with the next question.
      }
    }
  }

  async #load(thread: Store<Thread>, ref: string): Promise<void> {
    changeThread(thread, { loading: true, loadError: undefined });
    try {
      const { page, messages } = await this.#loadNewest(ref);
      const { agentId, sessionKey, forkedFrom } = page.session;
      changeThread(thread, { agentId, sessionKey, ref, forkedFrom, messages, earlier: page.offset, loading: false });
    } catch (error) {
      changeThread(thread, { loading: false, loadError: error });
    }
  }

  async #loadNewest(ref: string) {
    const first = await this.#loadPage(ref, 0, pageSize);
    // The newest messages are at the end, and the total is known only now.
    return first.page.hasMore ? this.#loadPage(ref, first.page.total - pageSize, pageSize) : first;
  }

  async #loadPage(ref: string, offset: number, limit: number) {
    const page = await this.#client.call('session.history', { conversationRef: ref, offset, limit });
    return { page, messages: toChatMessages(page.messages) };
  }

  /** Keeps the most recently used threads; running ones stay in any case. */
  #remember(ref: string, thread: Store<Thread>): void {
    if (thread === this.draft.get()) {
      this.#unsent.move(newConversation, ref);
      chooseModel(ref, thread.get());
    }
    this.#threads.delete(ref);
    this.#threads.set(ref, thread);
    for (const [key, other] of this.#threads) {
      if (this.#threads.size <= maxThreads) break;
      if (!this.#running.has(other)) this.#threads.delete(key);
    }
  }
}

function nameOf(thread: Store<Thread>): string {
  return thread.get().ref ?? newConversation;
}

/** Changes a queued message, or removes it. */
function changeQueued(thread: Store<Thread>, key: string, change: Partial<QueuedMessage> | undefined): void {
  const queue = thread.get().queue.flatMap((one) => (one.key !== key ? [one] : change === undefined ? [] : [{ ...one, ...change }]));
  changeThread(thread, { queue });
}

/** True for the refusal of a turn that has ended. */
const isOver = (error: unknown): boolean => error instanceof GatehouseError && error.code === 'precondition_failed';
