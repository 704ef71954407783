import { expect, test } from 'vitest';
import type { Thread } from './chat-thread.ts';
import { type Conversation, searchConversations } from './conversations.ts';
import { createStore } from './store.ts';

const one = (conversationRef: string, sessionKey: string, part: Partial<Conversation> = {}): Conversation => ({
  conversationRef,
  sessionKey,
  agentId: 'default',
  conversationScope: { tenantId: 'default', agentId: 'default', partition: { kind: 'principal-key', principalId: 'token:ada', sessionKey } },
  kind: 'dm',
  source: 'chat',
  messageCount: 2,
  totalTokens: 3,
  createdAt: 1,
  updatedAt: 1,
  ...part,
});
const conversations = [
  one('cv_a', 'ada:desk', { title: 'Plan the harvest' }),
  one('cv_b', 'bob:web', { agentId: 'scout' }),
  one('cv_c', 'dashboard:web-1'),
];
const thread: Thread = {
  key: 'thread-1',
  agentId: 'default',
  sessionKey: 'dashboard:web-1',
  ref: 'cv_c',
  earlier: 0,
  loading: false,
  loadError: undefined,
  running: false,
  queue: [],
  messages: [
    {
      key: '1',
      role: 'user',
      text: 'A walrus in Ålesund',
      atMs: 1,
      attachments: [],
      items: [],
      state: 'done',
      turnId: undefined,
      result: undefined,
      error: undefined,
    },
  ],
};
const find = (query: string) => searchConversations(conversations, query, [createStore(thread)]).map(({ conversationRef }) => conversationRef);

test('searches titles, keys, agents and loaded messages for terms', () => {
  expect(find('')).toEqual(['cv_a', 'cv_b', 'cv_c']);
  expect(find('HARVEST')).toEqual(['cv_a']);
  expect(find('bob')).toEqual(['cv_b']);
  expect(find('scout')).toEqual(['cv_b']);
  expect(find('ålesund walrus')).toEqual(['cv_c']);
  expect(find('web')).toEqual(['cv_b', 'cv_c']);
  expect(find('harvest walrus')).toEqual([]);
});
