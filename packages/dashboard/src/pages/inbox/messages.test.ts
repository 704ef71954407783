import { expect, test } from 'vitest';
import type { InboxMessage } from '../../data/inbox.ts';
import { matching, subjectOf } from './messages.ts';

const message = (id: string, change: Partial<InboxMessage> = {}): InboxMessage => ({
  id,
  source: 'cron',
  level: 'info',
  agentId: 'scout',
  conversationRef: null,
  text: `Text of ${id}`,
  createdAt: 1,
  readAt: null,
  ...change,
});

test('a subject is the first line with words, without marks', () => {
  const subject = (text: string) => subjectOf({ text, source: 'cron' });
  expect(subject('\n---\n## **Ten** `builds` were [green](https://example.org)\nmore')).toBe('Ten builds were green');
  expect(subject('1. First\n2. Second')).toBe('First');
  expect(subject('| Name | Count |\n| --- | --- |')).toBe('Name   Count');
  expect(subject('---')).toBe('Message of a job');
  expect(subject('Graph "Tides" (gr_00000000-0000-7000-8000-000000000001) has failed')).toBe('Graph "Tides" has failed');
  expect(subject('Sub-agent sr_00000000-0000-7000-8000-000000000001 has completed')).toBe('Sub-agent has completed');
  expect(subject('2 of 3 are done')).toBe('2 of 3 are done');
});

test('filters combine, and the open message stays when it is read', () => {
  const messages = [message('in_1'), message('in_2', { readAt: 5 }), message('in_3', { source: 'graph', text: 'The tide is high' })];
  const found = (filter: Partial<Parameters<typeof matching>[1]>, openId?: string) =>
    matching(messages, { unreadOnly: false, source: '', query: '', ...filter }, openId).map(({ id }) => id);
  expect(found({})).toEqual(['in_1', 'in_2', 'in_3']);
  expect(found({ unreadOnly: true })).toEqual(['in_1', 'in_3']);
  expect(found({ unreadOnly: true }, 'in_2')).toEqual(['in_1', 'in_2', 'in_3']);
  expect(found({ source: 'graph' })).toEqual(['in_3']);
  expect(found({ query: 'HIGH tide' })).toEqual(['in_3']);
  expect(found({ query: 'scout graph' })).toEqual(['in_3']);
  expect(found({ query: 'nothing' })).toEqual([]);
});
