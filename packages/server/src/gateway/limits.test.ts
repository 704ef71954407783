import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createAddressOf } from './address.ts';
import { GatewayConfig } from './config.ts';
import { createRateLimiter, SlidingWindow } from './limits.ts';

function steppedClock(): { now(): number; ageNow(): number; monotonic(): number; after(): () => void; step(ms: number): void } {
  let now = 0;
  return { now: () => now, ageNow: () => now, monotonic: () => now, after: () => () => {}, step: (ms) => void (now += ms) };
}

describe('the rate limiter', () => {
  it('opens a window at the first request and a new one when it ended', () => {
    const clock = steppedClock();
    const limiter = createRateLimiter({ windowMs: 1_000, maxRequests: 2, clock });
    expect(limiter.take('a')).toEqual({ allowed: true, limit: 2, remaining: 1, resetMs: 1_000 });
    clock.step(400);
    expect(limiter.take('a')).toMatchObject({ allowed: true, remaining: 0, resetMs: 600 });
    expect(limiter.take('a')).toMatchObject({ allowed: false, remaining: 0, resetMs: 600 });
    expect(limiter.take('b')).toMatchObject({ allowed: true });
    clock.step(600);
    expect(limiter.take('a')).toMatchObject({ allowed: true, remaining: 1 });
    expect(limiter.policy).toBe('2;w=1');
  });

  it('keeps a bounded number of keys, the newest', () => {
    const limiter = createRateLimiter({ windowMs: 1_000, maxRequests: 1, clock: steppedClock(), maxKeys: 2 });
    for (const key of ['a', 'b', 'c']) limiter.take(key);
    expect([limiter.take('c').allowed, limiter.take('b').allowed, limiter.take('a').allowed]).toEqual([false, false, true]);
  });
});

it('the sliding window allows no more than its number in any span', () => {
  const window = new SlidingWindow(3, 100);
  const taken: number[] = [];
  for (let now = 0; now < 1_000; now += 7) if (window.take(now) === 0) taken.push(now);
  for (const [index, at] of taken.entries()) expect(taken.slice(index).filter((other) => other < at + 100).length).toBeLessThanOrEqual(3);
  expect(taken.length).toBeGreaterThanOrEqual(27);
  expect(new SlidingWindow(1, 50).take(0)).toBe(0);
});

it.each(['10.0.0.0/33', 'proxy.example.org', '/8', ''])('refuses %j as a trusted proxy', (text) => {
  expect(() => GatewayConfig.parse({ trustedProxies: [text] })).toThrow(/expected an IP address or a range/);
});

describe('the address of a client', () => {
  const incoming = (remoteAddress: string, forwarded?: string): IncomingMessage =>
    ({ socket: { remoteAddress }, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;

  it.each([
    ['127.0.0.1', '127.0.0.1', '127.0.0.1'],
    ['::ffff:127.0.0.1', '127.0.0.1', '127.0.0.1'],
    ['::ffff:7f00:1', '127.0.0.1', '127.0.0.1'],
    ['2001:DB8:0:1::5', '2001:db8:0:1::5', '2001:db8:0:1::/64'],
    ['fe80::1%eth0', 'fe80::1', 'fe80:0:0:0::/64'],
    ['nonsense', 'unknown', 'unknown'],
  ])('%s is %s, keyed by %s', (address, text, key) => {
    expect(createAddressOf([])(incoming(address))).toEqual({ text, key });
  });

  it.each([
    ['nobody trusted', [], '10.0.0.1', '1.1.1.1', '10.0.0.1'],
    ['the peer is not a proxy', ['10.0.0.2'], '10.0.0.1', '1.1.1.1', '10.0.0.1'],
    ['one proxy', ['10.0.0.0/8'], '10.0.0.1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
    ['a chain of proxies', ['10.0.0.0/8'], '::ffff:10.0.0.1', '6.6.6.6, 1.1.1.1, 10.1.1.1', '1.1.1.1'],
    ['only proxies', ['10.0.0.0/8'], '10.0.0.1', '10.3.3.3', '10.3.3.3'],
    ['something that is not an address', ['10.0.0.0/8'], '10.0.0.1', '1.1.1.1, junk', '10.0.0.1'],
    ['a proxy of IPv6', ['fd00::/8'], 'fd00::1', '2001:db8::9', '2001:db8::9'],
  ])('with %s', (_what, trusted, peer, forwarded, text) => {
    expect(createAddressOf(trusted)(incoming(peer, forwarded)).text).toBe(text);
  });
});
