import type { TurnResult } from '@gatehouse/client';
import type { StoredMessage } from '@gatehouse/contract';
import { makesFiles, pathsOf } from './made-files.ts';
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
  /** Paths in the workspace of files that those made; undefined while only the server knows them. */
  readonly made?: readonly string[] | undefined;
  readonly state: 'done' | 'streaming' | 'stopped' | 'failed';
  /** Set for messages loaded from the server. */
  readonly turnId: string | undefined;
  /** Position in the stored conversation; set for messages loaded from the server. */
  readonly seq?: number | undefined;
  /** The mark that the answer has. */
  readonly rating?: 'good' | 'bad' | undefined;
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
  /** The conversation that this one is a branch of. */
  readonly forkedFrom?: string | undefined;
  readonly messages: readonly ChatMessage[];
  /** Number of earlier messages that are on the server only. */
  readonly earlier: number;
  readonly loading: boolean;
  readonly loadError: unknown;
  readonly running: boolean;
}

let made = 0;

/** Returns a key that no other message or thread of this tab has. */
function newKey(prefix: string): string {
  made += 1;
  return `${prefix}-${made}`;
}

export function createThread(part: Pick<Thread, 'agentId' | 'sessionKey' | 'ref' | 'loading'>): Store<Thread> {
  return createStore<Thread>({ key: newKey('thread'), messages: [], earlier: 0, loadError: undefined, running: false, ...part });
}

/** Creates a conversation that the server doesn't know yet. */
export function createDraft(agentId: string): Store<Thread> {
  return createThread({ agentId, sessionKey: `dashboard:web-${randomName()}`, ref: undefined, loading: false });
}

export function createMessage(role: ChatMessage['role'], text: string, more: Partial<ChatMessage> = {}): ChatMessage {
  return {
    key: newKey('here'),
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

export function changeThread(thread: Store<Thread>, part: Partial<Thread>): void {
  thread.set({ ...thread.get(), ...part });
}

export function changeLast(thread: Store<Thread>, part: Partial<ChatMessage>): void {
  const { messages } = thread.get();
  const last = messages.at(-1);
  if (last !== undefined) changeThread(thread, { messages: [...messages.slice(0, -1), { ...last, ...part }] });
}

/** Returns the last question and its position. */
export function lastQuestion({ messages }: Thread): { readonly at: number; readonly question: ChatMessage } | undefined {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const question = messages[at];
  return question === undefined ? undefined : { at, question };
}

/** Tool rows are shown with the answer that they led to. */
export function toChatMessages(rows: readonly StoredMessage[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let tools: string[] = [];
  let made: string[] = [];
  for (const row of rows) {
    for (const call of row.toolCalls ?? []) tools.push(call.name);
    if (row.role === 'tool' && makesFiles(row.toolName)) made.push(...pathsOf(row.content));
    if (row.role === 'tool' || (row.role === 'assistant' && row.content === '')) continue;
    messages.push({
      key: `stored-${row.seq}`,
      seq: row.seq,
      role: row.role,
      text: row.content,
      atMs: row.timestamp,
      attachments: row.attachments ?? [],
      tools: row.role === 'assistant' ? tools : [],
      made: row.role === 'assistant' ? made : [],
      state: 'done',
      turnId: row.turnId,
      ...(row.feedback !== undefined && { rating: row.feedback.rating }),
      result: undefined,
      error: undefined,
    });
    if (row.role === 'assistant' || row.role === 'user') [tools, made] = [[], []];
  }
  return messages;
}

/** 80 random bits as hexadecimal digits. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
