import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { ConfigError } from './config-error.ts';
import { loadConfig, maxConfigBytes } from './load.ts';

const Schema = z.strictObject({
  gateway: z
    .strictObject({
      host: z.string().min(1).default('127.0.0.1'),
      port: z.int().min(0).max(65535).default(4766),
      enabled: z.boolean().default(true),
      tokens: z
        .array(
          z.strictObject({
            id: z.string().regex(/^[a-z]+$/, 'expected small letters'),
            secret: z.string().min(32).meta({ secret: true }),
            scopes: z.array(z.enum(['rpc', 'admin'])).default([]),
          }),
        )
        .default([]),
    })
    .prefault({}),
  providers: z
    .record(
      z.string().regex(/^[a-z]+$/, 'expected small letters'),
      z.strictObject({
        type: z.enum(['openai', 'anthropic']),
        baseUrl: z.url({ protocol: /^https?$/ }).optional(),
        apiKey: z.string().min(8).optional().meta({ secret: true }),
        headers: z.record(z.string(), z.string()).default({}).meta({ secret: true }),
      }),
    )
    .default({}),
});

const load = (text: string, env: Record<string, string> = {}) => loadConfig({ schema: Schema, file: 'config.yaml', text, env });

function problems(text: string, env: Record<string, string> = {}): string[] {
  try {
    load(text, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('a file that is fine', () => {
  test('uses defaults for missing keys', () => {
    for (const text of ['', '# nothing\n', '---\n', 'gateway:\n  # port: 1\n']) expect(load(text).config.gateway.port).toBe(4766);
  });

  test('resolves references, also inside text, and keeps what is escaped', () => {
    const { config, literalSecrets, secrets } = load(
      'gateway:\n  host: "h-${A}.${B}"\n  port: ${PORT}\n  enabled: "${ON}"\nproviders: {x: {type: openai, apiKey: "$${not} ${KEY}"}}',
      { A: 'a', B: 'b', PORT: '81', ON: 'false', KEY: 'long enough' },
    );
    expect(config.gateway).toMatchObject({ host: 'h-a.b', port: 81, enabled: false });
    expect(config.providers['x']?.apiKey).toBe('${not} long enough');
    expect(secrets).toEqual(['${not} long enough']);
    expect(literalSecrets).toBe(false);
  });

  test('reports whether it contains a secret itself', () => {
    expect(load(`gateway: {tokens: [{id: a, secret: ${'s'.repeat(32)}}]}`)).toMatchObject({ literalSecrets: true, secrets: ['s'.repeat(32)] });
  });

  test('follows anchors', () => {
    expect(load('providers:\n  a: &a {type: openai}\n  b: *a\n').config.providers).toHaveProperty('b.type', 'openai');
  });

  test('treats only headers with a secret name as secrets', () => {
    expect(load('providers: {a: {type: openai, headers: {x-title: Gatehouse, authorization: Bearer abcdefgh}}}').secrets).toEqual([
      'Bearer abcdefgh',
    ]);
  });
});

describe('every problem is reported with position, key, expectation and finding', () => {
  test.each([
    ['gateway:\n  prot: 1\n', 'config.yaml:2:3: gateway.prot: unknown key; did you mean "port"?'],
    ['gatway: {}\n', 'config.yaml:1:1: gatway: unknown key; did you mean "gateway"?'],
    ['zzz: {}\n', 'config.yaml:1:1: zzz: unknown key; expected one of gateway, providers'],
    ['gateway:\n  port: 99999\n', 'config.yaml:2:9: gateway.port: expected an integer from 0 to 65535, found 99999'],
    ['gateway:\n  port: many\n', 'config.yaml:2:9: gateway.port: expected an integer from 0 to 65535, found "many"'],
    ['gateway:\n  port: 1.5\n', 'config.yaml:2:9: gateway.port: expected an integer from 0 to 65535, found 1.5'],
    ['gateway:\n  port:\n', 'config.yaml:2:8: gateway.port: expected an integer from 0 to 65535, found nothing (an empty value)'],
    ['gateway:\n  enabled: yes\n', 'config.yaml:2:12: gateway.enabled: expected true or false, found "yes"'],
    ['gateway: 5\n', 'config.yaml:1:10: gateway: expected a section (keys with values below it), found 5'],
    ['gateway:\n  tokens: {a: b}\n', 'config.yaml:2:11: gateway.tokens: expected a list, found a section'],
    ['gateway:\n  tokens:\n    - id: a\n', 'config.yaml:3:7: gateway.tokens[0].secret: is missing; expected text'],
    [
      'gateway:\n  tokens:\n    - id: a\n      secret: hunter2\n',
      'config.yaml:4:15: gateway.tokens[0].secret: expected at least 32 characters, found 7 characters',
    ],
    [
      `gateway:\n  tokens:\n    - {id: a, secret: ${'s'.repeat(32)}, scopes: [amin]}\n`,
      `config.yaml:3:${24 + 32 + 10}: gateway.tokens[0].scopes[0]: expected one of "rpc", "admin", found "amin"; did you mean "admin"?`,
    ],
    ['providers:\n  A: {type: openai}\n', 'config.yaml:2:3: providers.A: this name cannot be used: expected small letters'],
    [
      'providers:\n  a: {type: openai, baseUrl: "ftp://x"}\n',
      'config.yaml:2:30: providers.a.baseUrl: expected a URL that starts with http:// or https://, found text of 7 characters',
    ],
    ['providers:\n  a: {type: openai, apiKey:sk-123}\n', 'config.yaml:2:21: providers.a["apiKey…"]: a space is missing after "apiKey:"'],
    ['a: 1\na: 2\n', 'config.yaml:2:1: a: duplicate key'],
    ['__proto__: {a: 1}\n', 'config.yaml:1:1: __proto__: unknown key; expected one of gateway, providers'],
    ['- a\n', 'config.yaml:1:1: expected sections (keys with values below them), found a list'],
    ['just text\n', 'config.yaml:1:1: expected sections (keys with values below them), found a single value'],
    ['gateway:\n\tport: 1\n', 'config.yaml:2:1: a tab is used for indentation; YAML allows only spaces'],
    ['a: "unclosed\n', 'config.yaml:2:1: a closing quote or bracket, a comma, or the space after ":" is missing here or above'],
    ['gateway: {host: ${H}}\n', 'config.yaml:1:18: an unexpected character; inside { } and [ ] a value such as "${NAME}" must be quoted'],
    ['a: 1\n---\nb: 2\n', 'config.yaml:2:1: expected one document; a line "---" starts another'],
    ['a: !!binary aGk=\n', 'config.yaml:1:13: a: tags (words after "!") are not supported here'],
    ['a: *nobody\n', 'config.yaml:1:4: a: no anchor of this name is defined above; a value that begins with "*" must be quoted'],
    [
      'gateway:\n  host: ${NO_SUCH}\n',
      'config.yaml:2:9: gateway.host: NO_SUCH is not set (or empty), neither in the environment nor in the secret store; set it, or write $${…} for literal text',
    ],
    [
      'gateway:\n  host: "${A-b}"\n',
      'config.yaml:2:9: gateway.host: expected ${NAME} with a name of letters, digits and "_" (write $${ for a literal ${)',
    ],
  ])('%j', (text, expected) => {
    expect(problems(text)).toEqual([expected]);
  });

  test('all at once, in the order of the file', () => {
    expect(problems('providers: {a: {type: x}}\ngateway: {port: -1, zzz: 1}\n').map((line) => line.split(' ')[0])).toEqual([
      'config.yaml:1:23:',
      'config.yaml:2:17:',
      'config.yaml:2:21:',
    ]);
  });

  test('a value from outside the file is named by where it came from', () => {
    const outside = () =>
      loadConfig({
        schema: Schema,
        file: 'config.yaml',
        text: 'gateway: {port: 1}',
        env: {},
        overrides: [{ path: ['gateway', 'port'], value: 70000, source: '--port' }],
      });
    expect(outside).toThrow(/^--port: expected an integer from 0 to 65535, found 70000$/);
  });

  test('a value that came from the environment is not repeated', () => {
    expect(problems('gateway: {port: "${P}"}', { P: 'hunter2' })).toEqual([
      'config.yaml:1:17: gateway.port: expected an integer from 0 to 65535, found text of 7 characters',
    ]);
  });
});

describe('hostile files fail quickly with a clear error', () => {
  const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\n${[...'bcdefgh'].map((name, index) => `${name}: &${name} [${Array.from({ length: 9 }, () => `*${'abcdefgh'[index]}`).join(',')}]`).join('\n')}`;
  test.each([
    ['aliases that explode', bomb, /more than 100000 values/],
    ['an alias of itself', 'a: &a [*a]', /nested deeper than 32 levels/],
    ['deep nesting', '['.repeat(20_000), /nested too deep|not valid|closing/],
    ['deep blocks', '- '.repeat(200), /nested deeper than 32 levels/],
    ['a large file', `#${' '.repeat(maxConfigBytes)}`, /larger than 1048576 bytes/],
  ])('%s', (_name, text, expected) => {
    expect(problems(text).join('\n')).toMatch(expected);
  });

  test('the duplicate check of thousands of keys is not quadratic', () => {
    const text = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join('\n');
    expect(problems(text)).toHaveLength(20_000);
  });
});

test('whatever is wrong with the file, no error shows a secret', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9+/_=-]{32,64}$/);
  const damage = fc.array(
    fc.record({ at: fc.nat(400), remove: fc.nat(3), insert: fc.constantFrom('', ':', '\n', '{', '"', '- ', 'x', '#', '&a ', '*', '\t', '  ', '=') }),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(secret, secret, secret, damage, fc.boolean(), (token, key, header, edits, quoted) => {
      const quote = (text: string) => (quoted ? JSON.stringify(text) : text);
      let text = `gateway:\n  port: 99999\n  tokens:\n    - id: ops\n      secret: ${quote(token)}\n      scopes: [rpc, foo]\nproviders:\n  local:\n    type: openai\n    apiKey: ${quote(key)}\n    headers: {authorization: ${quote(header)}, x-more: "\${MORE}"}\n`;
      for (const { at, remove, insert } of edits) text = text.slice(0, at) + insert + text.slice(at + remove);
      // Damage may have bitten off a few characters of a secret; half of one would still be a leak.
      const parts = [token, key, header].map((value) => value.slice(8, 24));
      const said = problems(text, { MORE: token }).join('\n');
      for (const part of parts) expect(said).not.toContain(part);
    }),
    { numRuns: 500 },
  );
});
