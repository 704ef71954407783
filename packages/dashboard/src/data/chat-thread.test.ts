import type { StoredMessage } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { toChatMessages } from './chat-thread.ts';

const row = (seq: number, part: Partial<StoredMessage>): StoredMessage => ({
  seq,
  turnId: 'tn_1',
  role: 'assistant',
  content: '',
  timestamp: seq,
  ...part,
});
const call = { id: 'one', name: 'write', arguments: '{"path":"a"}' };

test('a turn with tool calls is one answer, with the calls where they were made', () => {
  const messages = toChatMessages([
    row(1, { role: 'user', content: 'Write' }),
    row(2, { content: 'I write.', toolCalls: [call] }),
    row(3, { role: 'tool', toolCallId: 'one', toolName: 'write', content: 'written' }),
    row(4, { content: 'Done.', feedback: { rating: 'good', by: 'token:ada', at: 1 } }),
    row(5, { turnId: 'tn_2', role: 'user', content: 'Again' }),
  ]);
  expect(messages).toMatchObject([
    { role: 'user', text: 'Write' },
    {
      role: 'assistant',
      key: 'stored-2',
      seq: 4,
      text: 'I write.\n\nDone.',
      rating: 'good',
      items: [{ callId: 'one', toolName: 'write', arguments: '{"path":"a"}', result: 'written', at: 8 }],
    },
    { role: 'user', text: 'Again' },
  ]);
});

test('a page that begins in the middle of a turn, and a turn that was stopped during a call', () => {
  const messages = toChatMessages([
    row(3, { role: 'tool', toolCallId: 'gone', toolName: 'write', content: 'written' }),
    row(4, { content: 'Done.' }),
    row(5, { turnId: 'tn_2', role: 'user', content: 'Again' }),
    row(6, { turnId: 'tn_2', toolCalls: [call] }),
  ]);
  expect(messages).toMatchObject([
    { text: 'Done.', items: [] },
    { role: 'user' },
    { role: 'assistant', text: '', items: [{ callId: 'one', result: undefined }] },
  ]);
});
