import type { TurnResult } from '@gatehouse/client';
import type { AnswerEffort, StoredMessage } from '@gatehouse/contract';
import { makesFiles, pathsOf } from './made-files.ts';
import { createStore, type Store } from './store.ts';
import { betweenTexts, type TurnCall, type TurnItem, withStored } from './turn-items.ts';

/** A file attached to a message, already stored on the server. */
export type Attachment = NonNullable<StoredMessage['attachments']>[number];

export interface ChatMessage {
  readonly key: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly atMs: number;
  readonly attachments: readonly Attachment[];
  /** Reasoning and tool calls of this answer, in order. */
  readonly items: readonly TurnItem[];
  /** Paths in the workspace of files that those made; undefined while only the server knows them. */
  readonly made?: readonly string[] | undefined;
  readonly state: 'done' | 'streaming' | 'stopped' | 'failed';
  /** Known once the turn is stored. */
  readonly turnId: string | undefined;
  /** Position in the stored conversation; known once the turn is stored. */
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
  /** Model of the next answers, instead of the agent's. */
  readonly model?: string | undefined;
  /** How long it reasons before them, instead of as usual. */
  readonly effort?: AnswerEffort | undefined;
  /** Messages that are sent when the running answer has ended. */
  readonly queue: readonly QueuedMessage[];
}

export interface QueuedMessage {
  readonly key: string;
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** The running turn was asked to take it. */
  readonly giving?: true | undefined;
  /** Why the turn did not take it. */
  readonly refused?: unknown;
}

let made = 0;

/** Returns a key that no other message or thread of this tab has. */
function newKey(prefix: string): string {
  made += 1;
  return `${prefix}-${made}`;
}

export function createThread(part: Pick<Thread, 'agentId' | 'sessionKey' | 'ref' | 'loading' | 'model' | 'effort'>): Store<Thread> {
  return createStore<Thread>({ key: newKey('thread'), messages: [], earlier: 0, loadError: undefined, running: false, queue: [], ...part });
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
    items: [],
    state: 'done',
    turnId: undefined,
    result: undefined,
    error: undefined,
    ...more,
  };
}

export function createQueued(text: string, attachments: readonly Attachment[]): QueuedMessage {
  return { key: newKey('queued'), text, attachments };
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
export function lastQuestion({ messages }: Pick<Thread, 'messages'>): { readonly at: number; readonly question: ChatMessage } | undefined {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const question = messages[at];
  return question === undefined ? undefined : { at, question };
}

/** The rows of a turn become one answer, with its tool calls between its texts. */
export function toChatMessages(rows: readonly StoredMessage[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const row of rows) {
    const before = messages.at(-1);
    const isNext = before?.role === 'assistant' && before.turnId === row.turnId;
    if (row.role === 'user') {
      // Given to the turn while it ran.
      if (isNext) messages[messages.length - 1] = withGivenRow(before, row);
      else messages.push(toMessage(row, 'user'));
      continue;
    }
    // The first row of a page may be in the middle of a turn.
    const answer = isNext ? before : { ...toMessage(row, 'assistant'), text: '' };
    const grown = row.role === 'assistant' ? withAnswerRow(answer, row) : withToolRow(answer, row);
    if (isNext) messages[messages.length - 1] = grown;
    else messages.push(grown);
  }
  return messages.filter(({ role, text, items }) => role === 'user' || text !== '' || items.length > 0);
}

function toMessage(row: StoredMessage, role: ChatMessage['role']): ChatMessage {
  return {
    key: `stored-${row.seq}`,
    seq: row.seq,
    role,
    text: row.content,
    atMs: row.timestamp,
    attachments: row.attachments ?? [],
    items: [],
    made: role === 'assistant' ? [] : undefined,
    state: 'done',
    turnId: row.turnId,
    result: undefined,
    error: undefined,
  };
}

function withAnswerRow(answer: ChatMessage, row: StoredMessage): ChatMessage {
  const text = [answer.text, row.content].filter((part) => part !== '').join(betweenTexts);
  const calls = (row.toolCalls ?? []).map((call): TurnCall => ({
    kind: 'call',
    callId: call.id,
    toolName: call.name,
    description: undefined,
    arguments: call.arguments,
    output: '',
    result: undefined,
    outcome: undefined,
    startedAtMs: undefined,
    durationMs: undefined,
    at: text.length,
  }));
  const { reasoning } = row;
  const thought: TurnItem[] =
    reasoning === undefined
      ? []
      : [
          {
            kind: 'reasoning',
            text: reasoning.text,
            startedAtMs: row.timestamp - reasoning.durationMs,
            endedAtMs: row.timestamp,
            at: answer.text.length,
          },
        ];
  return {
    ...answer,
    text,
    atMs: row.timestamp,
    seq: row.seq,
    attachments: [...answer.attachments, ...(row.attachments ?? []).filter((one) => !answer.attachments.includes(one))],
    items: [...answer.items, ...thought, ...calls],
    ...(row.feedback !== undefined && { rating: row.feedback.rating }),
  };
}

function withGivenRow(answer: ChatMessage, row: StoredMessage): ChatMessage {
  return { ...answer, seq: row.seq, items: [...answer.items, { kind: 'given', text: row.content, at: answer.text.length }] };
}

function withToolRow(answer: ChatMessage, row: StoredMessage): ChatMessage {
  const at = answer.items.findLastIndex((item) => item.kind === 'call' && item.callId === row.toolCallId);
  const call = answer.items[at];
  return {
    ...answer,
    seq: row.seq,
    items: call?.kind === 'call' ? answer.items.with(at, { ...call, result: row.content }) : answer.items,
    ...(makesFiles(row.toolName) && { made: [...(answer.made ?? []), ...pathsOf(row.content)] }),
  };
}

/**
 * Adds to the messages of this tab what only the stored ones have: positions, turns, arguments and whole results of calls, and where given
 * messages belong. A question is found by its text, from the newest on: of those that were sent again, this tab shows the last.
 */
export function withStoredTurns(messages: readonly ChatMessage[], stored: readonly ChatMessage[]): readonly ChatMessage[] {
  const result = [...messages];
  let left = stored;
  for (const [at, question] of [...messages.entries()].toReversed()) {
    if (question.role !== 'user' || question.seq !== undefined) continue;
    const place = left.findLastIndex(({ role, text }) => role === 'user' && text === question.text);
    const asked = left[place];
    if (asked === undefined) continue;
    const { seq, turnId } = asked;
    const answered = left.slice(place).find((one) => one.role === 'assistant' && one.turnId === turnId);
    left = left.slice(0, place);
    result[at] = { ...question, seq, turnId };
    const answer = result[at + 1];
    if (answer?.role !== 'assistant' || answered === undefined) continue;
    result[at + 1] = { ...answer, seq: answered.seq, turnId, items: withStored(answer.items, answered.items) };
  }
  return result;
}

/** 80 random bits as hexadecimal digits. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
