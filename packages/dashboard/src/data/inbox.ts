import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';

export type InboxMessage = Result<'inbox.list'>['messages'][number];

export interface InboxState {
  /** Messages, newest first; older pages follow once they are loaded. */
  readonly messages: readonly InboxMessage[];
  readonly unread: number;
  readonly hasMore: boolean;
  readonly loading: boolean;
  readonly error: unknown;
}

export interface Inbox {
  readonly state: Store<InboxState>;
  /** Loads messages from now on; before it, only how many are unread. */
  open(): void;
  /** Reloads the newest page. */
  reload(): void;
  /** Loads the page after the last message. */
  more(): void;
  /** Marks messages as read, or all of them. */
  markRead(which: readonly string[] | 'all'): Promise<void>;
  close(): void;
}

const pageSize = 50;
const settleMs = 100;

/** Returns the loaded messages that follow a newer page, so that a reader of older ones keeps them. */
function olderThan(loaded: readonly InboxMessage[], page: readonly InboxMessage[]): readonly InboxMessage[] {
  const ids = new Set(page.map(({ id }) => id));
  const lastAt = page.at(-1)?.createdAt ?? 0;
  // Without a common message there may be others between the two.
  return loaded.some(({ id }) => ids.has(id)) ? loaded.filter(({ id, createdAt }) => !ids.has(id) && createdAt <= lastAt) : [];
}

/** Messages from jobs, heartbeats, webhooks, sub-agents and graphs, kept up to date by the event stream. */
export function createInbox(client: Pick<Client, 'call'>, live: Pick<LiveEvents, 'listen'>): Inbox {
  const state = createStore<InboxState>({ messages: [], unread: 0, hasMore: false, loading: true, error: undefined });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let round = 0;
  let isOpen = false;

  /** The newest request wins: an earlier one may return older data. */
  function load(before?: string): void {
    round += 1;
    const mine = round;
    state.set({ ...state.get(), loading: true });
    client.call('inbox.list', { limit: isOpen ? pageSize : 1, before }).then(
      ({ messages, unread }) => {
        if (mine !== round) return;
        const now = state.get();
        if (!isOpen) return state.set({ ...now, unread, error: undefined });
        const isFull = messages.length === pageSize;
        const older = before === undefined && isFull ? olderThan(now.messages, messages) : [];
        state.set({
          messages: before === undefined ? [...messages, ...older] : [...now.messages, ...messages],
          unread,
          hasMore: older.length > 0 ? now.hasMore : isFull,
          loading: false,
          error: undefined,
        });
      },
      (error: unknown) => {
        if (mine === round) state.set({ ...state.get(), loading: false, error });
      },
    );
  }

  load();
  const stop = live.listen(({ kind }) => {
    if (kind !== 'inbox:message' && kind !== 'gap') return;
    clearTimeout(timer);
    timer = setTimeout(() => load(), settleMs);
  });
  return {
    state,
    open() {
      if (isOpen) return;
      isOpen = true;
      load();
    },
    reload: () => load(),
    more: () => load(state.get().messages.at(-1)?.id),
    async markRead(which) {
      await client.call('inbox.markRead', which === 'all' ? { all: true } : { ids: [...which] });
      const now = state.get();
      const readAt = Date.now();
      const messages = now.messages.map((one) => (one.readAt === null && (which === 'all' || which.includes(one.id)) ? { ...one, readAt } : one));
      // A list in flight was read before this change.
      round += 1;
      const left = now.messages.filter(({ readAt: at }) => at === null).length - messages.filter(({ readAt: at }) => at === null).length;
      state.set({ ...now, messages, unread: which === 'all' ? 0 : Math.max(0, now.unread - left), loading: false });
    },
    close() {
      clearTimeout(timer);
      stop();
    },
  };
}
