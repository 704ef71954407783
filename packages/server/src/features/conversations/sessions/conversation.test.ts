import { PrintedSessionKey, SessionKeyObject } from '@gatehouse/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chatKindOf, conversationRef, parseSessionKey, printSessionKey, type SessionKeyParts } from './conversation.ts';

// Texts that try to look like several parts, plus arbitrary ones.
const text = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  fc.string({ unit: fc.constantFrom(':', '%', '%3A', '%25', '3', 'A', 'a', '1:', '\0'), minLength: 1, maxLength: 6 }),
);
const keys = fc
  .record({ userId: text, channelId: text, peerId: text, threadId: text }, { requiredKeys: ['userId', 'channelId'] })
  .filter((key) => SessionKeyObject.safeParse(key).success);
const same = (a: SessionKeyParts, b: SessionKeyParts) =>
  a.userId === b.userId && a.channelId === b.channelId && a.peerId === b.peerId && a.threadId === b.threadId;

test('a key survives printing and parsing, whatever its parts contain', () => {
  fc.assert(
    fc.property(keys, (key) => {
      const printed = printSessionKey(key);
      expect(PrintedSessionKey.safeParse(printed).success).toBe(true);
      expect(same(parseSessionKey(printed), key)).toBe(true);
      expect(chatKindOf(printed)).toBe(key.threadId !== undefined ? 'thread' : key.peerId !== undefined ? 'group' : 'dm');
    }),
  );
});

test('two scopes have the same reference only when they are equal', () => {
  fc.assert(
    fc.property(text, text, text, text, keys, keys, (agent, otherAgent, principal, otherPrincipal, key, other) => {
      const equal = agent === otherAgent && principal === otherPrincipal && same(key, other);
      expect(conversationRef(agent, principal, key) === conversationRef(otherAgent, otherPrincipal, other)).toBe(equal);
      expect(conversationRef(agent, principal, key)).toBe(conversationRef(agent, principal, parseSessionKey(printSessionKey(key))));
    }),
  );
});

test('shifting the border between parts changes the conversation', () => {
  fc.assert(
    fc.property(text, text, text, text, (a, b, c, d) => {
      const refs = [
        conversationRef(a, b, { userId: c, channelId: d }),
        conversationRef(a, `${b}${c}`, { userId: c, channelId: d }),
        conversationRef(a, b, { userId: `${c}:${d}`, channelId: d }),
        conversationRef(a, b, { userId: c, channelId: `${d}:${a}` }),
        conversationRef(a, b, { userId: c, channelId: d, peerId: a }),
        conversationRef(a, b, { userId: c, channelId: d, threadId: a }),
        conversationRef(a, b, { userId: c, channelId: d, peerId: a, threadId: a }),
        conversationRef(a, b, { userId: c, channelId: d, peerId: `${a}:${a}` }),
      ];
      expect(new Set(refs).size).toBe(refs.length);
    }),
  );
});

test('references of earlier versions stay the same', () => {
  expect(conversationRef('default', 'token:root', { userId: 'ada', channelId: 'desk' })).toBe('cv_u3cMoBdPAE5v3VRcUhetBh2hkwpaj4Cb6IiPKKufm-c');
  expect(conversationRef('default', 'token:root', { userId: 'ada', channelId: 'desk', peerId: 'team' })).toBe(
    'cv_-OVF3LSWLkXhL0HWP7AEECcc6rs6pUxP-EGKJAJTKEM',
  );
});
