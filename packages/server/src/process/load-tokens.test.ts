import { expect, it } from 'vitest';
import { loadRootConfig } from './load-root-config.ts';

const weak = 'ops-secret-0123456789-abcdefghijklmnop';
const strong = 'q7RkV2mZ0xJt9sLbN4eWcY6uHfD1aGpT';
const load = (gateway: object, env: Record<string, string> = {}) =>
  loadRootConfig({ path: 'config.yaml', text: JSON.stringify({ gateway }) }, env, {});
const tokens = (secret: string) => [{ id: 'ops', secret, scopes: ['*'] }];

it('a secret that can be guessed is refused where others can reach the port', () => {
  expect(() => load({ host: '0.0.0.0', tokens: tokens(weak) })).toThrow(/gateway\.tokens\[?\.?0\]?\.secret: is too easy to guess/);
  expect(() => load({ host: '0.0.0.0' }, { GATEHOUSE_TOKEN: weak })).toThrow(/GATEHOUSE_TOKEN.*too easy to guess/s);
  expect(load({ host: '0.0.0.0', tokens: tokens(strong) }).config.gateway.tokens).toHaveLength(1);
  for (const host of ['127.0.0.1', '::1', 'localhost']) expect(load({ host, tokens: tokens(weak) }).config.gateway.tokens).toHaveLength(1);
  expect(load({ host: '0.0.0.0', enabled: false, tokens: tokens(weak) }).config.gateway.tokens).toHaveLength(1);
});
