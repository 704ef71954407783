import { randomBytes, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { guessingBits } from './guessing-bits.ts';

it.each([
  ['32 hex digits', () => randomBytes(16).toString('hex')],
  ['32 characters of base64', () => randomBytes(24).toString('base64')],
  ['48 bytes in base64url', () => randomBytes(48).toString('base64url')],
  ['two UUIDs', () => `${randomUUID()}${randomUUID()}`],
])('random secrets have 128 bits: %s', (_what, make) => {
  // A chance repeat costs a few bits of 32 hex digits now and then.
  const found = Array.from({ length: 50 }, () => guessingBits(make())).toSorted((a, b) => a - b);
  expect(found[5]).toBeGreaterThanOrEqual(128);
});

it.each([
  'a'.repeat(64),
  'ab'.repeat(32),
  '0123456789'.repeat(5),
  'abcdefghijklmnopqrstuvwxyz0123456789',
  'my-secret-0123456789-abcdefghijklmnop',
  'password-password-password-password-password',
  `ops-token-${'y'.repeat(40)}`,
  '12345678901234567890123456789012',
])('secrets that follow a pattern have less: %s', (secret) => {
  expect(guessingBits(secret)).toBeLessThan(128);
});
