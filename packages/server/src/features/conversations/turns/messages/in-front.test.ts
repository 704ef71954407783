import { expect, test } from 'vitest';
import { putInFront } from './in-front.ts';

const user = { role: 'user', content: 'What is this?' } as const;

test('a block goes before the question and keeps the attachments', () => {
  expect(putInFront([{ role: 'assistant', content: 'Hi' }, user], 'block')).toEqual([
    { role: 'assistant', content: 'Hi' },
    { role: 'user', content: 'block\n\nWhat is this?' },
  ]);
  const image = { type: 'image', url: 'data:image/png;base64,AA==' } as const;
  expect(putInFront([{ ...user, parts: [{ type: 'text', text: 'What is this?' }, image] }], 'block')).toEqual([
    { role: 'user', content: 'block\n\nWhat is this?', parts: [{ type: 'text', text: 'block' }, { type: 'text', text: 'What is this?' }, image] },
  ]);
});

test('nothing is inserted between a tool call and its result', () => {
  const messages = [user, { role: 'tool', content: '4', toolCallId: 'c', toolName: 't' } as const];
  expect(putInFront(messages, 'block')).toBe(messages);
});
