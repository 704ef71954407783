import { contract } from '@gatehouse/contract';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import type { CallContext } from '../../../kernel/call-context.ts';
import { createRedactor } from '../../../kernel/redact.ts';
import { createSettings } from './settings.ts';

const schema = z.strictObject({
  gateway: z
    .strictObject({
      port: z.int().min(0).max(65535).default(4766).describe('Port.'),
      hosts: z.array(z.string()).default([]).meta({ apply: 'live' }),
      tokens: z.array(z.strictObject({ id: z.string(), secret: z.string().meta({ secret: true }) })).default([]),
    })
    .prefault({}),
  providers: z
    .record(z.string(), z.strictObject({ apiKey: z.string().optional().meta({ secret: true }), baseUrl: z.string().optional() }))
    .default({}),
  embedding: z.strictObject({ model: z.string() }).optional(),
});
const config = schema.parse({
  gateway: { tokens: [{ id: 'ops', secret: 'correct horse battery' }] },
  providers: { local: { apiKey: 'sk-abc', baseUrl: 'http://ada:pa55word@127.0.0.1/v1' } },
});
const { methods, sections } = createSettings({
  schema,
  configuration: { current: config, restartNeeded: ['gateway.port'] },
  redactText: createRedactor().redact,
});
const call: CallContext = {
  identity: { principalId: 'token:ops', tokenId: 'ops', scopes: ['admin'] },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
};

describe('config.read', () => {
  test('returns all sections without a secret', async () => {
    const result = contract['config.read'].result.parse(await methods['config.read']({}, call));
    expect(result).toEqual({
      sections: ['gateway', 'providers', 'embedding'],
      restartNeeded: ['gateway.port'],
      config: {
        gateway: { port: 4766, hosts: [], tokens: [{ id: 'ops', secret: '[REDACTED]' }] },
        providers: { local: { apiKey: '[REDACTED]', baseUrl: 'http://[REDACTED]@127.0.0.1/v1' } },
      },
    });
    expect(sections).toEqual(result.sections);
  });

  test('returns one section, null where an optional one is absent', async () => {
    expect(await methods['config.read']({ section: 'gateway' }, call)).toMatchObject({
      section: 'gateway',
      config: { port: 4766, tokens: [{ secret: '[REDACTED]' }] },
    });
    expect(await methods['config.read']({ section: 'embedding' }, call)).toMatchObject({ config: null });
  });

  test.each(['gatway', '__proto__', 'constructor', 'toString'])('names the valid sections instead of %s', async (section) => {
    for (const name of ['config.read', 'config.schema'] as const) {
      await expect(methods[name]({ section }, call)).rejects.toMatchObject({
        code: 'not_found',
        message: `Unknown config section: "${section}". Valid sections: gateway, providers, embedding`,
      });
    }
  });
});

describe('config.schema', () => {
  test('describes what may be written: keys with a default are optional', async () => {
    const { schema: document } = contract['config.schema'].result.parse(await methods['config.schema']({}, call));
    expect(document).toMatchObject({
      type: 'object',
      additionalProperties: false,
      properties: { gateway: { properties: { port: { type: 'integer', maximum: 65535, default: 4766, description: 'Port.' } } } },
    });
    expect(document).not.toHaveProperty('required');
  });

  test('says how a change of a key applies', async () => {
    const marks = { 'x-gatehouse-apply': 'restart', properties: { hosts: { 'x-gatehouse-apply': 'live' } } };
    expect((await methods['config.schema']({}, call)).schema).toMatchObject({
      properties: { gateway: marks, providers: { 'x-gatehouse-apply': 'restart' } },
    });
    const { schema: one } = await methods['config.schema']({ section: 'gateway' }, call);
    expect(one).toMatchObject(marks);
    expect(JSON.stringify(one)).not.toContain('"apply"');
  });

  test('of one section', async () => {
    const result = await methods['config.schema']({ section: 'embedding' }, call);
    expect(result).toMatchObject({ section: 'embedding', sections, schema: { type: 'object', required: ['model'] } });
  });
});
