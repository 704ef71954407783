import type { Client, TurnResult } from '@gatehouse/client';
import type { StoredMessage } from '@gatehouse/contract';
import { createStore, type Store } from './store.ts';

/** A file attached to a message, already stored on the server. */
export type Attachment = NonNullable<StoredMessage['attachments']>[number];

export interface ChatMessage {
  readonly key: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly atMs: number;
  readonly attachments: readonly Attachment[];
  /** Tools that the agent used for this answer. */
  readonly tools: readonly string[];
  readonly state: 'done' | 'streaming' | 'stopped' | 'failed';
  /** Set for messages loaded from the server. */
  readonly turnId: string | undefined;
  readonly result: Pick<TurnResult, 'finishReason' | 'tokensUsed' | 'failure' | 'traceId'> | undefined;
  readonly error: unknown;
}

/** A conversation as this tab knows it. */
export interface Thread {
  /** Stays the same in this tab, also when the server assigns a reference. */
  readonly key: string;
  readonly agentId: string;
  readonly sessionKey: string;
  /** Known once the server has stored the conversation. */
  readonly ref: string | undefined;
  readonly messages: readonly ChatMessage[];
  /** Number of earlier messages that are on the server only. */
  readonly earlier: number;
  readonly loading: boolean;
  readonly loadError: unknown;
  readonly running: boolean;
}

/** Text and files that were not sent yet. */
export interface Unsent {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

export interface ChatStore {
  /** The new conversation that the server doesn't know yet, with its unsent text. */
  readonly draft: Store<Store<Thread>>;
  /** Replaces it with an empty one, for the default agent unless one is named. */
  begin(agentId?: string): void;
  /** Returns an existing conversation and loads its newest messages if necessary. */
  open(ref: string): Store<Thread>;
  reload(thread: Store<Thread>): void;
  loadEarlier(thread: Store<Thread>): Promise<void>;
  send(thread: Store<Thread>, text: string, attachments: readonly Attachment[]): Promise<void>;
  /** Sends the last question again. */
  retry(thread: Store<Thread>): Promise<void>;
  stop(thread: Store<Thread>): void;
  /** Removes the last question and its answer, and returns the question to the message field for editing. */
  editLastQuestion(thread: Store<Thread>): void;
  unsent(thread: Store<Thread>): Unsent;
  keepUnsent(thread: Store<Thread>, unsent: Unsent): void;
  /** Threads whose messages are loaded, for the search. */
  loaded(): readonly Store<Thread>[];
  forget(ref: string): void;
  close(): void;
}

const pageSize = 50;
const maxThreads = 40;
const maxUnsent = 40;
/** A stopped turn is stored a moment later. */
const findDelaysMs = [300, 1_000, 3_000];
const nothing: Unsent = { text: '', attachments: [] };

/** Conversations outlive the page that shows them, so an answer continues while another page is open. */
export function createChatStore(client: Client, defaultAgentId: string): ChatStore {
  const threads = new Map<string, Store<Thread>>();
  const running = new Map<Store<Thread>, AbortController>();
  const unsent = new Map<string, Unsent>();
  let made = 0;
  let closed = false;

  const change = (thread: Store<Thread>, part: Partial<Thread>) => thread.set({ ...thread.get(), ...part });

  function changeLast(thread: Store<Thread>, part: (last: ChatMessage) => Partial<ChatMessage>): void {
    const { messages } = thread.get();
    const last = messages.at(-1);
    if (last !== undefined) change(thread, { messages: [...messages.slice(0, -1), { ...last, ...part(last) }] });
  }

  function remember(ref: string, thread: Store<Thread>): void {
    threads.delete(ref);
    threads.set(ref, thread);
    for (const [key, other] of threads) {
      if (threads.size <= maxThreads) break;
      if (!running.has(other)) threads.delete(key);
    }
  }

  async function loadPage(ref: string, offset: number, limit: number) {
    const page = await client.call('session.history', { conversationRef: ref, offset, limit });
    return { page, messages: toChatMessages(page.messages) };
  }

  async function load(thread: Store<Thread>, ref: string): Promise<void> {
    change(thread, { loading: true, loadError: undefined });
    try {
      let { page, messages } = await loadPage(ref, 0, pageSize);
      // The newest messages are at the end, and the total is known only now.
      if (page.hasMore) ({ page, messages } = await loadPage(ref, page.total - pageSize, pageSize));
      const { agentId, sessionKey } = page.session;
      change(thread, { agentId, sessionKey, ref, messages, earlier: page.offset, loading: false });
    } catch (error) {
      change(thread, { loading: false, loadError: error });
    }
  }

  async function run(thread: Store<Thread>, question: ChatMessage): Promise<void> {
    const abort = new AbortController();
    running.set(thread, abort);
    const answer = newMessage('assistant', '', { state: 'streaming' });
    change(thread, { messages: [...thread.get().messages, question, answer], running: true });
    const { agentId, sessionKey } = thread.get();
    let text = '';
    let drawing = false;
    /** Batches text deltas so that the page isn't redrawn for each one. */
    const draw = (): void => {
      if (drawing) return;
      drawing = true;
      setTimeout(() => {
        drawing = false;
        if (thread.get().messages.at(-1)?.state === 'streaming') changeLast(thread, () => ({ text }));
      }, 40);
    };
    try {
      const events = client.streamTurn(
        {
          message: question.text,
          agentId,
          sessionKey,
          ...(question.attachments.length > 0 && { attachments: question.attachments.map(({ mediaId }) => ({ mediaId })) }),
        },
        // Without an idempotency key the server stops the turn as soon as the client disconnects, not 30 s later.
        { signal: abort.signal, idempotencyKey: false },
      );
      for await (const event of events) {
        if (event.type === 'token') {
          text += event.delta;
          draw();
        } else if (event.type === 'done') {
          const { conversationRef, response, failure } = event.result;
          // A failed turn has no text, or the text that arrived before the failure.
          changeLast(thread, () => ({
            text: response === '' ? text : response,
            state: failure === undefined ? 'done' : 'failed',
            result: event.result,
          }));
          change(thread, { ref: conversationRef });
          remember(conversationRef, thread);
        }
      }
    } catch (error) {
      changeLast(thread, () => ({ text, state: abort.signal.aborted ? 'stopped' : 'failed', error: abort.signal.aborted ? undefined : error }));
    } finally {
      running.delete(thread);
      change(thread, { running: false });
    }
    if (thread.get().ref === undefined) await findRef(thread);
  }

  /** Looks up the conversation of a stopped turn: only a completed turn returns its reference. */
  async function findRef(thread: Store<Thread>): Promise<void> {
    const { agentId, sessionKey } = thread.get();
    for (const delayMs of findDelaysMs) {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      if (closed || running.has(thread) || thread.get().ref !== undefined) return;
      try {
        const { session } = await client.call('session.history', { agentId, sessionKey, limit: 1 });
        remember(session.conversationRef, thread);
        return change(thread, { ref: session.conversationRef });
      } catch {
        // Not stored yet, or no connection: the conversation starts with the next question.
      }
    }
  }

  function keepUnsent(thread: Store<Thread>, one: Unsent): void {
    const { key } = thread.get();
    unsent.delete(key);
    if (one.text !== '' || one.attachments.length > 0) unsent.set(key, one);
    for (const oldest of unsent.keys()) {
      if (unsent.size <= maxUnsent) break;
      unsent.delete(oldest);
    }
  }

  function newMessage(role: ChatMessage['role'], text: string, more: Partial<ChatMessage> = {}): ChatMessage {
    made += 1;
    return {
      key: `here-${made}`,
      role,
      text,
      atMs: Date.now(),
      attachments: [],
      tools: [],
      state: 'done',
      turnId: undefined,
      result: undefined,
      error: undefined,
      ...more,
    };
  }

  function newThread(part: Pick<Thread, 'agentId' | 'sessionKey' | 'ref' | 'loading'>): Store<Thread> {
    made += 1;
    return createStore<Thread>({ key: `thread-${made}`, messages: [], earlier: 0, loadError: undefined, running: false, ...part });
  }

  const newDraft = (agentId: string) => newThread({ agentId, sessionKey: `dashboard:web-${randomName()}`, ref: undefined, loading: false });
  const draft = createStore(newDraft(defaultAgentId));

  return {
    draft,
    begin: (agentId = defaultAgentId) => draft.set(newDraft(agentId)),
    open(ref) {
      const known = threads.get(ref);
      const thread = known ?? newThread({ agentId: '', sessionKey: '', ref, loading: true });
      remember(ref, thread);
      if (known === undefined) void load(thread, ref);
      return thread;
    },
    reload(thread) {
      const { ref } = thread.get();
      if (ref !== undefined && !running.has(thread)) void load(thread, ref);
    },
    async loadEarlier(thread) {
      const { ref, earlier } = thread.get();
      if (ref === undefined || earlier === 0) return;
      const offset = Math.max(0, earlier - pageSize);
      const { messages } = await loadPage(ref, offset, earlier - offset);
      change(thread, { messages: [...messages, ...thread.get().messages], earlier: offset });
    },
    async send(thread, text, attachments) {
      if (!running.has(thread)) await run(thread, newMessage('user', text, { attachments }));
    },
    async retry(thread) {
      if (running.has(thread)) return;
      const { messages } = thread.get();
      const at = messages.findLastIndex(({ role }) => role === 'user');
      const question = messages[at];
      if (question === undefined) return;
      // A retry replaces the earlier answer, unless that one is complete.
      if (messages.at(-1)?.state !== 'done') change(thread, { messages: messages.slice(0, at) });
      await run(thread, newMessage('user', question.text, { attachments: question.attachments }));
    },
    stop: (thread) => running.get(thread)?.abort(),
    editLastQuestion(thread) {
      const { messages } = thread.get();
      const at = messages.findLastIndex(({ role }) => role === 'user');
      const question = messages[at];
      if (question === undefined || running.has(thread)) return;
      change(thread, { messages: messages.slice(0, at) });
      const { text, attachments } = unsent.get(thread.get().key) ?? nothing;
      keepUnsent(thread, {
        text: [question.text, text].filter(Boolean).join('\n\n'),
        attachments: [...question.attachments, ...attachments],
      });
    },
    unsent: (thread) => unsent.get(thread.get().key) ?? nothing,
    keepUnsent,
    loaded: () => [...threads.values()],
    forget: (ref) => void threads.delete(ref),
    close() {
      closed = true;
      for (const abort of running.values()) abort.abort();
    },
  };
}

/** Tool rows are shown with the answer that they led to. */
function toChatMessages(rows: readonly StoredMessage[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let tools: string[] = [];
  for (const row of rows) {
    for (const call of row.toolCalls ?? []) tools.push(call.name);
    if (row.role === 'tool' || (row.role === 'assistant' && row.content === '')) continue;
    messages.push({
      key: `stored-${row.seq}`,
      role: row.role,
      text: row.content,
      atMs: row.timestamp,
      attachments: row.attachments ?? [],
      tools: row.role === 'assistant' ? tools : [],
      state: 'done',
      turnId: row.turnId,
      result: undefined,
      error: undefined,
    });
    if (row.role === 'assistant' || row.role === 'user') tools = [];
  }
  return messages;
}

/** 80 random bits as hexadecimal digits. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
