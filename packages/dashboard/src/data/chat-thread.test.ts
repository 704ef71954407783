import type { StoredMessage } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { createMessage, toChatMessages, withStoredTurns } from './chat-thread.ts';

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

test('messages of this tab get the positions of the stored ones, also when a question was sent again', () => {
  const here = [
    createMessage('user', 'Again'),
    createMessage('assistant', 'Half of', { state: 'stopped' }),
    createMessage('user', 'Write'),
    createMessage('assistant', 'Done.'),
    createMessage('user', 'Not stored'),
  ];
  const stored = toChatMessages([
    row(1, { turnId: 'tn_0', role: 'user', content: 'Again' }),
    row(2, { turnId: 'tn_1', role: 'user', content: 'Again' }),
    row(3, { turnId: 'tn_1', content: 'Half of it' }),
    row(4, { turnId: 'tn_2', role: 'user', content: 'Write' }),
    row(5, { turnId: 'tn_2', role: 'user', content: 'A background task has ended' }),
    row(6, { turnId: 'tn_2', toolCalls: [call] }),
    row(7, { turnId: 'tn_2', content: 'Done.' }),
  ]);
  const completed = withStoredTurns(here, stored);
  expect(completed).toMatchObject([
    { seq: 2, turnId: 'tn_1' },
    { seq: 3, turnId: 'tn_1', text: 'Half of', state: 'stopped' },
    { seq: 4, turnId: 'tn_2' },
    { seq: 7, turnId: 'tn_2', items: [{ callId: 'one', arguments: '{"path":"a"}' }] },
    {},
  ]);
  expect(completed.at(-1)).toBe(here.at(-1));
});
