import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countTokens } from './count-tokens.ts';
import { knownModel } from './known-models.ts';
import { cacheSaving, costOf, totalCost } from './price.ts';

const usage = { input: 1000, output: 500, cacheRead: 600, cacheWrite: 100, estimated: false };

describe('the cost of a call', () => {
  test('is whole nano-dollars, each token paid for once', () => {
    const cost = costOf(usage, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 });
    expect(cost).toEqual({ input: 900_000, output: 7_500_000, cacheRead: 180_000, cacheWrite: 375_000 });
    expect(cost === null ? 0 : totalCost(cost) / 1e9).toBeCloseTo(0.008955, 9);
    expect(cacheSaving(usage, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 })).toBe(3_000_000 - 900_000 - 180_000 - 375_000);
  });

  test('is unknown without a price', () => {
    expect(costOf(usage, null)).toBeNull();
    expect(cacheSaving(usage, null)).toBeNull();
  });
});

describe('counting tokens', () => {
  test.for([
    ['The gateway sits between clients and services, and it forwards what they say to each other.', 18],
    ['{"name":"read_file","arguments":{"path":"notes/2026-11-21.md","limit":50}}', 24],
    ['Grüße aus München, wir möchten die Öffnungszeiten ändern.', 13],
    ['网关位于客户端和服务之间，转发它们彼此之间的消息。', 19],
    ['sha512-8hD3kQz0Jx1mR5vTn7bYw2cF9gLpS4aUeXoViZqKtMrNjHdBlEyWfCsGuOxPzA==', 55],
  ] as const)('%s', ([text, real]) => {
    expect(countTokens(text)).toBeGreaterThanOrEqual(real * 0.9);
    expect(countTokens(text)).toBeLessThanOrEqual(real * 1.5);
  });

  test('never exceeds two tokens a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(countTokens(text)).toBeGreaterThanOrEqual(0);
        expect(countTokens(text)).toBeLessThanOrEqual(text.length * 2);
      }),
    );
  });
});

test('a dated version of a model has the facts of its plain id', () => {
  expect(knownModel('openai', 'gpt-4o-2024-08-06')).toMatchObject({ id: 'gpt-4o-2024-08-06', contextWindow: 128_000 });
  expect(knownModel('anthropic', 'claude-haiku-4-5-20251001')?.price).toMatchObject({ input: 1, output: 5 });
  expect(knownModel('openai', 'gpt-4o-mini-other')).toBeUndefined();
});
