import type { Attachment } from './chat-thread.ts';

/** Text and files that were not sent yet. */
export interface Unsent {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

const nothing: Unsent = { text: '', attachments: [] };
const maxKept = 40;
const maxLength = 50_000;
/** Deleted at logout, with everything else that the tab keeps. */
const storageKey = 'gatehouse.unsent';

/** Keeps what was not sent, by the conversation, in this tab: it survives a reload. Forgets the oldest of too many. */
export class UnsentMessages {
  readonly #byConversation: Map<string, Unsent>;

  constructor() {
    this.#byConversation = restore();
  }

  get(conversation: string): Unsent {
    return this.#byConversation.get(conversation) ?? nothing;
  }

  keep(conversation: string, unsent: Unsent): void {
    const known = this.#byConversation.delete(conversation);
    const isEmpty = unsent.text === '' && unsent.attachments.length === 0;
    if (!isEmpty) this.#byConversation.set(conversation, unsent);
    for (const oldest of this.#byConversation.keys()) {
      if (this.#byConversation.size <= maxKept) break;
      this.#byConversation.delete(oldest);
    }
    if (known || !isEmpty) this.#store();
  }

  /** Follows a new conversation that the server has given a reference. */
  move(from: string, to: string): void {
    const unsent = this.#byConversation.get(from);
    if (unsent === undefined) return;
    this.keep(from, nothing);
    this.keep(to, unsent);
  }

  #store(): void {
    const kept = [...this.#byConversation].filter(([, { text }]) => text.length <= maxLength);
    try {
      sessionStorage.setItem(storageKey, JSON.stringify(kept));
    } catch {
      // The storage is full: what is unsent stays while the tab is open.
    }
  }
}

function restore(): Map<string, Unsent> {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? '[]');
    return new Map(Array.isArray(stored) ? stored.filter(isEntry) : []);
  } catch {
    return new Map();
  }
}

function isEntry(value: unknown): value is [string, Unsent] {
  if (!Array.isArray(value) || typeof value[0] !== 'string') return false;
  const unsent: unknown = value[1];
  return (
    typeof unsent === 'object' &&
    unsent !== null &&
    'text' in unsent &&
    typeof unsent.text === 'string' &&
    'attachments' in unsent &&
    Array.isArray(unsent.attachments) &&
    unsent.attachments.every((one: unknown) => typeof one === 'object' && one !== null && 'mediaId' in one && typeof one.mediaId === 'string')
  );
}
