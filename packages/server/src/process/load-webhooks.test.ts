import { expect, it } from 'vitest';
import { loadRootConfig } from './load-root-config.ts';
import { startWarnings } from '../wiring/start-warnings.ts';

const token = 'a-shared-secret-of-more-than-32-characters';
const load = (host: string, webhooks: object) =>
  loadRootConfig({ path: 'config.yaml', text: JSON.stringify({ gateway: { host }, webhooks }) }, {}, {});

it('a start is refused where anybody could start an agent', () => {
  const open = { mappings: [{ id: 'fine', secret: token }, { id: 'open' }] };
  expect(() => load('0.0.0.0', open)).toThrow(/webhooks\.mappings\[?\.?1\]?: accepts requests from anybody: others can reach 0\.0\.0\.0/);
  expect(() => load('gate.example', { presets: ['none', 'gmail'] })).toThrow(/webhooks\.presets\[?\.?1\]?: accepts requests from anybody/);
  for (const host of ['127.0.0.1', '::1', 'localhost']) expect(load(host, open).config.webhooks.mappings).toHaveLength(2);
  expect(load('0.0.0.0', { ...open, token }).config.webhooks.token).toBe(token);
  expect(load('0.0.0.0', { ...open, enabled: false }).config.webhooks.enabled).toBe(false);
  expect(load('0.0.0.0', { mappings: [{ id: 'open', allowUnauthenticated: true }] }).config.webhooks.mappings).toHaveLength(1);
});

it('an unknown key is reported with the nearest known one', () => {
  expect(() => load('127.0.0.1', { mappings: [{ id: 'a', sesionKey: 'x' }] })).toThrow(/sesionKey.*sessionKey/s);
});

it('the secrets are known as such, and a preset that does not exist is reported', () => {
  const loaded = load('127.0.0.1', { token, presets: ['github', 'gitlab'], mappings: [{ id: 'a', secret: `${token}-2` }] });
  expect(loaded.secrets).toEqual(expect.arrayContaining([token, `${token}-2`]));
  const warnings = startWarnings(loaded.config, { logModules: [] });
  expect(warnings).toEqual([expect.stringContaining('no preset "gitlab"')]);
});

it('headerName together with a conflicting signatureHeader is refused', () => {
  const twice = { headerName: 'x-one', signatureHeader: 'X-Two' };
  expect(() => load('127.0.0.1', { token, ...twice })).toThrow(/webhooks\.headerName: is an alias of signatureHeader/);
  expect(() => load('127.0.0.1', { mappings: [{ id: 'a', ...twice }] })).toThrow(/mappings\[?\.?0\]?\.headerName: is an alias/);
  expect(load('127.0.0.1', { token, headerName: 'X-One', signatureHeader: 'x-one' }).config.webhooks.headerName).toBe('x-one');
});
