import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { redactedConfig } from './redacted.ts';
import { isSecretName, liveSecrets } from './secrets.ts';

const Schema = z.strictObject({
  tokens: z.array(z.strictObject({ id: z.string(), secret: z.string().meta({ secret: true }) })),
  providers: z.record(
    z.string(),
    z.strictObject({
      hidden: z.string().optional().meta({ secret: true }),
      headers: z.record(z.string(), z.string()).default({}).meta({ secret: true }),
      baseUrl: z.string(),
    }),
  ),
  pin: z.number().optional().meta({ secret: true }),
});
const keep = (text: string) => text;

test('the schema decides, at every depth and for every kind of value', () => {
  const config = Schema.parse({
    tokens: [{ id: 'a', secret: 'x' }],
    providers: { p: { hidden: 'h', headers: { 'x-title': 't' }, baseUrl: 'u' } },
    pin: 1234,
  });
  expect(redactedConfig(Schema, config, keep)).toEqual({
    tokens: [{ id: 'a', secret: '[REDACTED]' }],
    providers: { p: { hidden: '[REDACTED]', headers: { 'x-title': '[REDACTED]' }, baseUrl: 'u' } },
    pin: '[REDACTED]',
  });
});

test('the name of a key decides where the schema is silent, also below it', () => {
  const config = { webhook_secret: 'a', apiKey: 'b', credentials: { user: 'c', list: ['d'] }, maxTokens: 5, tokens: ['e'], token: 7 };
  expect(redactedConfig(z.looseObject({}), config, keep)).toEqual({
    webhook_secret: '[REDACTED]',
    apiKey: '[REDACTED]',
    credentials: { user: '[REDACTED]', list: ['[REDACTED]'] },
    maxTokens: 5,
    tokens: ['e'],
    token: 7,
  });
});

test('other texts pass the redactor', () => {
  expect(
    redactedConfig(Schema, { tokens: [], providers: { p: { headers: {}, baseUrl: 'http://u:p@h' } } }, (text) => text.replace('u:p@', '')),
  ).toHaveProperty('providers.p.baseUrl', 'http://h');
});

test('secret names', () => {
  expect(
    [
      'token',
      'secret',
      'hmacSecret',
      'bot_token',
      'apiKey',
      'api-key',
      'API_KEY',
      'privateKey',
      'password',
      'authorization',
      'set-cookie',
      'webhookToken',
    ].filter((name) => !isSecretName(name)),
  ).toEqual([]);
  expect(['tokens', 'maxTokens', 'keyName', 'secretary', 'id', 'monkey', 'cookieJar'].filter(isSecretName)).toEqual([]);
});

test('no secret of any configuration is left in its redacted form', () => {
  const secret = fc.stringMatching(/^[a-z0-9]{16,40}$/);
  fc.assert(
    fc.property(fc.array(secret, { maxLength: 4 }), fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), secret, { maxKeys: 4 }), (tokens, keys) => {
      const config = Schema.parse({
        tokens: tokens.map((value) => ({ id: 'a', secret: value })),
        providers: Object.fromEntries(
          Object.entries(keys).map(([name, value]) => [name, { hidden: value, headers: { authorization: value }, baseUrl: 'u' }]),
        ),
      });
      const shown = JSON.stringify(redactedConfig(Schema, config, keep));
      for (const value of [...tokens, ...Object.values(keys)]) expect(shown).not.toContain(value);
      expect(new Set(liveSecrets(Schema, config))).toEqual(new Set([...tokens, ...Object.values(keys)]));
    }),
  );
});
