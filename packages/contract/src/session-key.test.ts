import { describe, expect, it } from 'vitest';
import { SessionKey } from './shared/session.ts';

describe('SessionKey', () => {
  it.each([
    [{ userId: 'ada', channelId: 'desk' }],
    ['ada:desk'],
    ['ada:desk:group:7'],
    ['ada:desk::7'],
    [{ userId: 'ada', channelId: 'desk', threadId: '7' }],
    ['☃é:日本:😀'],
    [`${'%25'.repeat(256)}:${'%3a'.repeat(256)}:${'x'.repeat(256)}`],
  ])('takes %j', (key) => {
    expect(SessionKey.safeParse(key).success).toBe(true);
  });

  // Invalid Unicode would be stored as U+FFFD and make different keys equal; a part longer than its object form could not be printed again.
  it.each([
    [{ userId: '\ud800', channelId: 'desk' }],
    ['\ud801:desk'],
    [`${'x'.repeat(257)}:desk`],
    [`${'%'.repeat(257)}:desk`],
    ['a'],
    ['a:'],
    ['a:b:'],
    ['a:b::'],
    ['a:b:c:'],
    ['a:b:c:d:e'],
    [{ userId: 'a', channelId: 'b', threadId: '' }],
  ])('refuses %j', (key) => {
    expect(SessionKey.safeParse(key).success).toBe(false);
  });
});
