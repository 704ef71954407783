import { expect, test } from 'vitest';
import { ConfigError } from '../kernel/config/config-error.ts';
import { silentLog } from '../kernel/log.ts';
import { FileConfiguration } from './configuration.ts';

function open(text: string, env: Record<string, string> = {}) {
  const file = { text };
  const secrets: string[] = [];
  const configuration = new FileConfiguration({
    file: '/h/config.yaml',
    read: () => ({ text: file.text, protect: () => undefined }),
    env,
    flags: {},
    redactor: { add: (more) => void secrets.push(...more) },
    log: silentLog,
  });
  return { file, secrets, configuration };
}

test('a reload names what changed; a key that needs a restart is remembered until the file has the old value again', async () => {
  const { file, configuration } = open('gateway:\n  port: 4801\n');
  configuration.begin(configuration.load().loaded);
  file.text = 'gateway:\n  port: 4802\n';
  const port = { changed: ['gateway.port'], restart: ['gateway.port'] };
  expect(await configuration.reload('test')).toEqual(port);
  expect([configuration.current.gateway.port, configuration.restartNeeded]).toEqual([4801, ['gateway.port']]);
  expect(await configuration.reload('test')).toEqual({ changed: [], restart: [] });
  expect(configuration.restartNeeded).toEqual(['gateway.port']);
  file.text = '{}';
  expect(await configuration.reload('test')).toEqual(port);
  file.text = 'gateway: { port: 4801 }';
  expect(await configuration.reload('test')).toEqual({ changed: ['gateway.port'], restart: [] });
  expect(configuration.restartNeeded).toEqual([]);
});

test('the same text changes nothing, and a changed part of an absent section is one of it', async () => {
  const text = 'providers: { a: { type: vllm, headers: { x: y }, models: [{ id: m }] } }\nagents: { b: { model: a/m } }\n';
  const { file, configuration } = open(text);
  configuration.begin(configuration.load().loaded);
  const { current } = configuration;
  expect(await configuration.reload('test')).toEqual({ changed: [], restart: [] });
  expect(configuration.current).toBe(current);
  file.text = `${text}embedding: { provider: hashing }`;
  expect(await configuration.reload('test')).toEqual({ changed: ['embedding'], restart: ['embedding'] });
  file.text = `${text}embedding: { provider: hashing, dimensions: 64 }`;
  expect(await configuration.reload('test')).toEqual({ changed: ['embedding.dimensions'], restart: ['embedding.dimensions'] });
});

test('a file that cannot be used is refused with its problems, and what was in force stays', async () => {
  const { file, configuration } = open('gateway: { port: 4801 }');
  configuration.begin(configuration.load().loaded);
  const { current } = configuration;
  file.text = 'gatewy: { port: 4802 }';
  await expect(configuration.reload('test')).rejects.toThrow(ConfigError);
  await expect(configuration.reload('test')).rejects.toThrow('/h/config.yaml:1:1: gatewy');
  expect(configuration.current).toBe(current);
});

test('live changes wait for the restart when they would not be allowed without the others', async () => {
  const secret = 'abcdefghijklmnopqrstuvwxyz0123456789';
  const hooks = 'webhooks: { mappings: [{ id: build, match: { path: build } }], ';
  const { file, configuration } = open(`gateway: { host: 0.0.0.0 }\n${hooks} token: ${secret} }\n`);
  configuration.begin(configuration.load().loaded);
  file.text = `gateway: { host: 127.0.0.1 }\n${hooks} }\n`;
  const both = ['gateway.host', 'webhooks.token'];
  expect(await configuration.reload('test')).toEqual({ changed: both, restart: both });
  expect(configuration.current.webhooks.token).toBe(secret);
});

test('after a start with an earlier configuration the keys of the file need a restart', () => {
  const { file, configuration } = open('gateway: { port: 4801 }');
  const { loaded: earlier } = configuration.load();
  file.text = 'gateway: { port: 4802 }';
  configuration.begin(configuration.load().loaded);
  expect(configuration.restartNeeded).toEqual([]);
  configuration.begin(earlier);
  expect(configuration.restartNeeded).toEqual(['gateway.port']);
});

test('only a text that was not read yet is stale, and a file that cannot be read is reported', async () => {
  const { file, configuration } = open('gateway: { port: 4801 }');
  configuration.begin(configuration.load().loaded);
  expect([configuration.isStale(), configuration.fault]).toEqual([false, undefined]);
  file.text = 'gateway: { prot: 1 }';
  expect(configuration.isStale()).toBe(true);
  await expect(configuration.reload('test')).rejects.toThrow('prot');
  expect([configuration.isStale(), configuration.fault]).toEqual([false, expect.stringContaining('gateway.prot')]);
});

test('a name is looked up in the environment first and then among the secrets, which are hidden', async () => {
  const token = (character: string) => `${character}abcdefghijklmnopqrstuvwxyz0123456789`;
  const text = 'gateway:\n  tokens:\n    - { id: a, secret: "${ONE}" }\n    - { id: b, secret: "${TWO}" }\n';
  const { secrets, configuration } = open(text, { ONE: token('1'), TWO: '' });
  expect(() => configuration.check(text)).toThrow('TWO');
  configuration.useSecrets((name) => ({ ONE: token('x'), TWO: token('2') })[name]);
  const { loaded } = configuration.load();
  expect(loaded.config.gateway.tokens.map(({ secret }) => secret)).toEqual([token('1'), token('2')]);
  expect(secrets).toEqual([token('1'), token('2')]);
});

test('an option hides no bad value from a check', () => {
  const configuration = new FileConfiguration({
    file: '/h/config.yaml',
    read: () => ({ text: 'gateway: { port: many }', protect: () => undefined }),
    env: {},
    flags: { port: 4801 },
    redactor: { add() {} },
    log: silentLog,
  });
  expect(configuration.load().loaded.config.gateway.port).toBe(4801);
  expect(() => configuration.check('gateway: { port: many }')).toThrow('/h/config.yaml:1:18: gateway.port: expected an integer from 0 to 65535');
  expect(configuration.check('gateway: { port: 1 }').config.gateway.port).toBe(4801);
});
