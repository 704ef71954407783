import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createAddressOf } from './address.ts';
import { GatewayConfig } from './config.ts';

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
