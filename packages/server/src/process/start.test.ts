import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { RootConfig } from '../config-schema.ts';
import { configTemplate } from './config-template.ts';
import { exitCodeOf } from './exit-code-of.ts';
import { exitCodes } from './exit-codes.ts';
import { defaultOf, descriptionOf } from '../kernel/config/schema-walk.ts';
import { diskFullError } from '../kernel/disk-space.ts';
import { UnsafePathError } from '../kernel/private-file.ts';
import { loadRootConfig } from './load-root-config.ts';
import { parseArguments } from './start-arguments.ts';
import { fileSystemWarnings } from '../wiring/start-warnings.ts';
import { version } from '../version.ts';

const secret = 'a-secret-of-more-than-32-characters-1234';
const load = (text: string, env: Record<string, string> = {}, flags: { port?: number; host?: string } = {}) =>
  loadRootConfig({ path: 'config.yaml', text }, env, flags);

describe('the configuration file of a first start', () => {
  const template = configTemplate();
  const uncommented = template
    .split('\n')
    .filter((line) => !line.startsWith('##') && !line.startsWith('# yaml-language-server:'))
    .map((line) => line.replace(/^# /, ''))
    .join('\n');

  test('changes nothing when unedited', () => {
    expect(load(template).config).toEqual(RootConfig.parse({}));
  });

  test('is valid with every setting uncommented, and each setting is the default', () => {
    const { config } = load(uncommented, { OPS_TOKEN: secret, LOCAL_KEY: 'key-of-a-local-server' });
    const defaults = RootConfig.parse({});
    expect(config.providers['local']).toMatchObject({ type: 'openai-compatible', apiKey: 'key-of-a-local-server' });
    expect({ ...config.gateway, tokens: [] }).toEqual(defaults.gateway);
    expect([config.models, config.routing, config.storage, config.logging]).toEqual([
      defaults.models,
      defaults.routing,
      defaults.storage,
      defaults.logging,
    ]);
  });

  test('names every key, and explains it where the schema does', () => {
    const missing: string[] = [];
    const walk = (schema: z.ZodObject) => {
      for (const [name, part] of Object.entries(schema.shape)) {
        if (!new RegExp(`^#+ +(- )?${name}:`, 'm').test(template)) missing.push(name);
        const text = descriptionOf(part);
        if (text !== undefined && !template.includes(text)) missing.push(text);
        if (defaultOf(part) === undefined && part instanceof z.ZodPrefault && part.unwrap() instanceof z.ZodObject)
          walk(z.strictObject(z.instanceof(z.ZodObject).parse(part.unwrap()).shape));
      }
    };
    walk(RootConfig);
    expect(missing).toEqual([]);
  });
});

describe('what overrides the file', () => {
  test('flags over environment over file', () => {
    expect(load('gateway: {port: 1}', {}, {}).config.gateway.port).toBe(1);
    expect(load('gateway: {port: 1}', { GATEHOUSE_PORT: '2' }, {}).config.gateway.port).toBe(2);
    expect(load('gateway: {port: 1, host: a}', { GATEHOUSE_PORT: '2' }, { port: 3, host: '::1' }).config.gateway).toMatchObject({
      port: 3,
      host: '::1',
    });
    expect(load('', { GATEHOUSE_PORT: '' }, {}).config.gateway.port).toBe(4766);
  });

  test('GATEHOUSE_TOKEN is the first token, unless the file has given its secret a name', () => {
    const env = { GATEHOUSE_TOKEN: secret };
    const named = load('gateway: {tokens: [{id: ops, secret: "${GATEHOUSE_TOKEN}", scopes: [rpc]}]}', env);
    expect(named.config.gateway.tokens).toEqual([{ id: 'ops', secret, scopes: ['rpc'] }]);
    const added = load('gateway: {tokens: [{id: ops, secret: another-secret-of-32-characters-or-more}]}', env);
    expect(added.config.gateway.tokens.map(({ id, scopes }) => [id, scopes])).toEqual([
      ['env', ['*']],
      ['ops', []],
    ]);
    expect(added.secrets).toContain(secret);
    expect(() => load('gateway: {tokens: [{id: env, secret: another-secret-of-32-characters-or-more}]}', env)).toThrow(/another token of id "env"/);
  });
});

describe('the command line', () => {
  const parse = (argv: string[], env: Record<string, string> = {}) => parseArguments(argv, env, '/srv');

  test('knows the home folder', () => {
    expect(parse([], { GATEHOUSE_HOME: '/h' })).toMatchObject({ home: '/h' });
    expect(parse(['--home', '/flag'], { GATEHOUSE_HOME: '/h' })).toMatchObject({ home: '/flag' });
    expect(parse(['start', '--home=here'])).toMatchObject({ kind: 'start', home: '/srv/here' });
    expect(parse([])).toMatchObject({ home: expect.stringMatching(/\/\.gatehouse$/) });
  });

  test('uses the folder of the user, not that of the package, under npm', () => {
    expect(parse(['--home', 'x'], { npm_lifecycle_event: 'start', INIT_CWD: '/person' })).toMatchObject({ home: '/person/x' });
    expect(parse(['--home', 'x'], { INIT_CWD: '/person' })).toMatchObject({ home: '/srv/x' });
  });

  test.each([
    ['--home='],
    ['--host='],
    ['--port=-1'],
    ['--port=65536'],
    ['--port=1e3'],
    ['--port='],
    ['--what'],
    ['--install-key=x'],
    ['a', 'b'],
    ['start', 'start'],
  ])('%j is refused', (...argv) => {
    expect(parse(argv)).toMatchObject({ kind: 'wrong', message: expect.stringMatching(/expected/) });
  });
});

test('a network file system under the data folder causes a warning', () => {
  expect(fileSystemWarnings('/srv/data', () => 0x6969)).toEqual(process.platform === 'linux' ? [expect.stringContaining('NFS')] : []);
  expect(fileSystemWarnings('/srv/data', () => 0xef53)).toEqual([]);
});

test('a start on a full disk has a separate code, whatever fails first', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  for (const error of [full, new UnsafePathError('/home', 'cannot be made', { cause: full }), diskFullError('/home', full)])
    expect(exitCodeOf(error)).toBe(73);
});

test('exit codes differ', () => {
  const codes = Object.values(exitCodes).map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
});

test('the version equals that of the package', () => {
  const { version: packaged } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')));
  expect(version).toBe(packaged);
});
