import { expect, test } from 'vitest';
import { createInbox } from './inbox.ts';
import type { FeedEntry } from './live.ts';

const message = (id: string, readAt: number | null = null) => ({
  id,
  source: 'cron' as const,
  level: 'info' as const,
  agentId: 'default',
  conversationRef: null,
  text: `Text of ${id}`,
  createdAt: 1,
  readAt,
});

/** An inbox whose requests the test answers one by one. */
function open() {
  const asked: { method: string; params: unknown; answer: (value: unknown) => void }[] = [];
  let hear: (entry: FeedEntry) => void = () => undefined;
  const call = (method: string, params: unknown) =>
    new Promise((resolve) => {
      asked.push({ method, params, answer: resolve });
    });
  const inbox = createInbox(
    // The answers follow the contract; the test checks which method they are for.
    { call: call as never },
    {
      listen: (listener) => {
        hear = listener;
        return () => undefined;
      },
    },
  );
  inbox.open();
  // The count of unread messages, which the first page replaces.
  expect(asked.shift()).toMatchObject({ params: { limit: 1 } });
  return { inbox, asked, hear: (kind: string) => hear({ number: 1, kind, payload: {}, atMs: 0 }) };
}

test('an event loads the newest messages, and an older answer is dropped', async () => {
  const { inbox, asked, hear } = open();
  hear('inbox:message');
  await expect.poll(() => asked.length).toBe(2);
  asked[1]?.answer({ messages: [message('in_2'), message('in_1')], unread: 2 });
  asked[0]?.answer({ messages: [], unread: 0 });
  await expect.poll(() => inbox.state.get().messages.map(({ id }) => id)).toEqual(['in_2', 'in_1']);
  expect(inbox.state.get().unread).toBe(2);
  hear('message:sent');
  expect(asked).toHaveLength(2);
});

test('marking messages as read lowers the unread count by the unread ones only', async () => {
  const { inbox, asked } = open();
  asked[0]?.answer({ messages: [message('in_3'), message('in_2', 5), message('in_1')], unread: 7 });
  await expect.poll(() => inbox.state.get().loading).toBe(false);
  const marked = inbox.markRead(['in_3', 'in_2']);
  expect(asked[1]).toMatchObject({ method: 'inbox.markRead', params: { ids: ['in_3', 'in_2'] } });
  asked[1]?.answer({ marked: 1 });
  await marked;
  expect(inbox.state.get().unread).toBe(6);
  expect(inbox.state.get().messages.map(({ readAt }) => readAt !== null)).toEqual([true, true, false]);
  const all = inbox.markRead('all');
  asked[2]?.answer({ marked: 6 });
  await all;
  expect(inbox.state.get().unread).toBe(0);
});

test('a new message keeps the older pages that were loaded', async () => {
  const { inbox, asked, hear } = open();
  const page = (from: number) => Array.from({ length: 50 }, (_, at) => ({ ...message(`in_${from - at}`), createdAt: from - at }));
  asked[0]?.answer({ messages: page(100), unread: 100 });
  await expect.poll(() => inbox.state.get().messages.length).toBe(50);
  inbox.more();
  expect(asked[1]).toMatchObject({ params: { before: 'in_51' } });
  asked[1]?.answer({ messages: page(50), unread: 100 });
  await expect.poll(() => inbox.state.get().messages.length).toBe(100);
  hear('inbox:message');
  await expect.poll(() => asked.length).toBe(3);
  asked[2]?.answer({ messages: page(101), unread: 101 });
  await expect.poll(() => inbox.state.get().unread).toBe(101);
  expect(inbox.state.get().messages.map(({ createdAt }) => createdAt)).toEqual(Array.from({ length: 101 }, (_, at) => 101 - at));
});
