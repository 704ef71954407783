import { expect, test } from 'vitest';
import { ircActions } from './irc.ts';

const accepts = (name: keyof typeof ircActions, params: object) => ircActions[name].params().safeParse(params).success;

test('no parameter of an action becomes another command', () => {
  for (const channel of ['#lab', '&local', '+modeless', '!id']) expect(accepts('join', { channel })).toBe(true);
  for (const channel of ['lab', '#a,#b', '#a b', '#', '#a\r\nQUIT', '#a\0']) expect(accepts('join', { channel })).toBe(false);
  expect(accepts('join', { channel: '#lab', key: 'secret' })).toBe(true);
  for (const key of ['two words', ':first', 'a,b', '']) expect(accepts('join', { channel: '#lab', key })).toBe(false);
  expect(accepts('topic', { topic: 'Tea at five' })).toBe(true);
  expect(accepts('topic', { topic: 'a\nQUIT' })).toBe(false);
  expect(accepts('part', { reason: 'a\r\nQUIT' })).toBe(false);
});

test('reading changes nothing, and leaving takes something', () => {
  const names = (wanted: string) => Object.entries(ircActions).flatMap(([name, { risk }]) => (risk === wanted ? [name] : []));
  expect([names('read'), names('destructive')]).toEqual([['names', 'sendTyping'], ['part']]);
});
