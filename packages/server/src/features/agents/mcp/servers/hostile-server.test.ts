import { silentLog } from '../../../../kernel/log.ts';
import { createStepClock } from '@gatehouse/testkit';
import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { describe, expect, test } from 'vitest';
import { McpServerConfig } from '../config.ts';
import type { Connection } from '../connection/connection.ts';
import { ManagedServer } from './managed-server.ts';
import { buildTools } from '../tools/tool-list.ts';
import { renderResult } from '../tools/tool-result.ts';
import { cleanSchema } from '../tools/tool-schema.ts';

const options = { server: 's', identity: 'x', readOnlyTools: [], timeoutMs: 1000, call: () => Promise.reject(new Error('not called')) };

test('a result of many items and much structured content is read in linear time', async () => {
  const render = (items: number) => {
    const content = Array.from({ length: items }, () => ({ type: 'text', text: 'a b' }));
    return renderResult({ content, structuredContent: { a: 'x '.repeat(items * 500) } }, 's').content;
  };
  expect(await cpuGrowth(125, render)).toBeLessThan(linear);
  expect(render(1000)).toContain('x x x');
  const structured = { rows: [1, 2] };
  expect(renderResult({ content: [{ type: 'text', text: JSON.stringify(structured) }], structuredContent: structured }, 's').content).toBe(
    '{"rows":[1,2]}',
  );
});

describe('the list of tools', () => {
  const large = { type: 'object', properties: Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`p${index}`, {}])) };

  test('is limited in total, and reading it yields to others', async () => {
    let turns = 0;
    let over = false;
    const others = (): void => {
      turns += 1;
      if (!over) setImmediate(others);
    };
    setImmediate(others);
    const declared = Array.from({ length: 500 }, (_, index) => ({ name: `t${index}`, inputSchema: large }));
    const { tools, dropped } = await buildTools(declared, options, []);
    over = true;
    expect(tools.length).toBeGreaterThan(10);
    expect(tools.reduce((sum, { tool }) => sum + JSON.stringify(tool.parameters).length, 0)).toBeLessThan(1_200_000);
    expect(tools.length + dropped).toBe(500);
    expect(turns).toBeGreaterThan(10);
  });

  test('omits what is nested beyond every limit', async () => {
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`);
    const { tools, dropped } = await buildTools(
      [
        { name: 'deep', inputSchema: { type: 'object', properties: { deep } } },
        { name: 'plain', inputSchema: { type: 'object' } },
      ],
      options,
      [],
    );
    expect({ names: tools.map(({ name }) => name), dropped }).toEqual({ names: ['plain'], dropped: 1 });
  });
});

describe('a schema that a provider would refuse, with the whole request,', () => {
  test.each([
    ['wrong types', { properties: 'no', required: 'a', description: 7 }, {}],
    ['an unknown type', { properties: { a: { type: 'any', title: 'A' } } }, { properties: { a: { title: 'A' } } }],
    [
      'numbers of an old draft',
      { properties: { a: { type: 'number', minimum: 1, exclusiveMinimum: true } } },
      { properties: { a: { type: 'number', minimum: 1 } } },
    ],
    ['a list of items', { properties: { a: { type: 'array', items: [{ type: 'string' }] } } }, { properties: { a: { type: 'array' } } }],
    [
      'names that are none',
      { properties: { 'a b': {}, ok: {}, 'x\u200by': {} }, required: ['a b', 'ok', 'ok', 3] },
      { properties: { ok: {} }, required: ['ok'] },
    ],
    [
      'a reference elsewhere',
      { properties: { a: { $ref: 'https://schema.example/a' }, b: { $ref: '#/$defs/none' } } },
      { properties: { a: {}, b: {} } },
    ],
    ['unknown names', { $id: 'x', $anchor: 'y', properties: { a: { $schema: 'z', 'x-secret': 1 } } }, { properties: { a: {} } }],
    ['empty choices', { properties: { a: { enum: [], anyOf: [], oneOf: 'x' } } }, { properties: { a: {} } }],
    ['a pattern that is none', { properties: { a: { type: 'string', pattern: '(' } } }, { properties: { a: { type: 'string' } } }],
    [
      'a choice at the top',
      { oneOf: [{ properties: { a: { type: 'string' } }, required: ['a'] }, { properties: { b: {} } }], not: {}, enum: [{}] },
      { properties: { a: { type: 'string' }, b: {} } },
    ],
    [
      'both at the top',
      { properties: { a: {} }, allOf: [{ properties: { b: {} }, required: ['b'] }] },
      { properties: { a: {}, b: {} }, required: ['b'] },
    ],
  ])('omits %s', (_title, schema, expected) => expect(cleanSchema({ type: 'object', ...schema })).toEqual({ type: 'object', ...expected }));

  test('is unchanged when it is valid', () => {
    const schema = {
      type: 'object',
      description: 'All of it.',
      properties: {
        path: { type: 'string', minLength: 1, pattern: '^[a-z]+$', format: 'uri', default: 'a', examples: ['b'] },
        mode: { enum: ['a', null, 1], title: 'Mode' },
        many: { type: ['array', 'null'], items: { $ref: '#/$defs/one' }, maxItems: 3, uniqueItems: true },
        either: { anyOf: [{ type: 'string' }, { type: 'object', additionalProperties: { type: 'number', exclusiveMinimum: 0 } }] },
        'with.dots-and_more': true,
      },
      $defs: { one: { type: 'object', properties: { next: { $ref: '#/$defs/one' }, self: { $ref: '#' } } } },
      required: ['path'],
      additionalProperties: false,
    };
    expect(cleanSchema({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema })).toEqual(schema);
  });
});

test('a server that could not be connected again on demand has no tools left', async () => {
  const clock = createStepClock();
  let lose: (reason: string) => void = () => {};
  let works = true;
  const managed = new ManagedServer({
    name: 's',
    config: McpServerConfig().parse({ transport: 'http', url: 'http://127.0.0.1:9/mcp' }),
    clock,
    log: silentLog,
    onTools: () => {},
    redactText: (text) => text,
    open: async (events): Promise<Connection> => {
      if (!works) throw new Error('no answer');
      lose = events.onLost;
      return {
        facts: { capabilities: [] },
        listTools: async () => [{ name: 'a', inputSchema: { type: 'object' } }],
        call: () => Promise.reject(new Error('not called')),
        ping: async () => 0,
        close: async () => {},
      };
    },
  });
  await managed.connect();
  expect(managed.view().tools).toHaveLength(1);
  works = false;
  lose('gone');
  expect(managed.view()).toMatchObject({ status: 'reconnecting', tools: [expect.anything()] });
  await expect(managed.connect()).rejects.toThrow('no answer');
  expect(managed.view()).toMatchObject({ status: 'error', tools: [] });
  await managed.disconnect();
});
