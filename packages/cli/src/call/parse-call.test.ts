import { expect, test } from 'vitest';
import { flagsOfExample } from './help.ts';
import { findMethod, loadMethods, type MethodShape } from './method-shape.ts';
import { parseCall } from './parse-call.ts';

const document = loadMethods();

function parse(method: string, words: readonly string[]) {
  return parseCall(words, findMethod(document, method), async (source) => source);
}

/** A method with parameter types that are rare in the registry. */
const made: MethodShape = {
  method: { ...findMethod(document, 'system.ping').method, name: 'made.up', params: [{ name: 'x', schema: {} }] },
  lookup: () => undefined,
  params: {
    type: 'object',
    properties: {
      url: { type: 'string' },
      dryRun: { type: 'boolean' },
      limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
      mode: { enum: ['fast', 'safe', 3] },
      tags: { type: 'array', items: { type: 'integer' } },
      levels: { type: 'object', additionalProperties: { type: 'string' } },
      anything: {},
    },
  },
};

function parseMade(...words: string[]) {
  return parseCall(words, made, async (source) => source);
}

test.each([
  [['--agent-id', 'scout', '--kind', 'dm', '--limit', '5'], { agentId: 'scout', kind: 'dm', limit: 5 }],
  [['--agentId=scout', '--since-minutes=10'], { agentId: 'scout', sinceMinutes: 10 }],
  [['--json', '{"limit": 5, "kind": "all"}', '--limit', '7'], { limit: 7, kind: 'all' }],
  [[], {}],
])('session.list %j', async (words, params) => {
  expect((await parse('session.list', words)).params).toEqual(params);
});

test.each([
  [['--session-key', 'ada:desk'], { sessionKey: 'ada:desk' }],
  [['--session-key.user-id', 'ada', '--session-key.channelId', 'desk'], { sessionKey: { userId: 'ada', channelId: 'desk' } }],
  [['--session-key', '{"userId":"ada","channelId":"desk"}'], { sessionKey: { userId: 'ada', channelId: 'desk' } }],
])('a parameter with two forms accepts either: %j', async (words, params) => {
  expect((await parse('agent.execute', ['--message', 'hi', ...words])).params).toEqual({ message: 'hi', ...params });
});

test('lists are repeated flags or JSON; maps and free objects accept any key', async () => {
  expect((await parse('tokens.create', ['--scopes', 'rpc', '--scopes', 'api'])).params).toEqual({ scopes: ['rpc', 'api'] });
  expect((await parse('tokens.create', ['--scopes', '[]'])).params).toEqual({ scopes: [] });
  expect(
    (
      await parse('agents.create', [
        '--agent-id',
        'a',
        '--config.operation-models.cron.model',
        'm',
        '--config.tools.allow',
        'x',
        '--config.tools.allow',
        'y',
      ])
    ).params,
  ).toEqual({
    agentId: 'a',
    config: { operationModels: { cron: { model: 'm' } }, tools: { allow: ['x', 'y'] } },
  });
  expect((await parse('agents.update', ['--agent-id', 'a', '--config.maxSteps', '40', '--dry-run'])).params).toEqual({
    agentId: 'a',
    config: { maxSteps: 40 },
    dryRun: true,
  });
});

test.each([
  [['--dry-run'], { dryRun: true }],
  [['--no-dry-run'], { dryRun: false }],
  [['--dry-run', 'false'], { dryRun: false }],
  [['--dry-run', '--limit', '-5'], { dryRun: true, limit: -5 }],
  [['--limit', 'null'], { limit: null }],
  [['--mode', '3'], { mode: 3 }],
  [['--tags', '1', '--tags', '2'], { tags: [1, 2] }],
  [['--levels.http', 'debug'], { levels: { http: 'debug' } }],
  [['--anything', '{"a":1}'], { anything: { a: 1 } }],
  [['--anything', 'words'], { anything: 'words' }],
  [['--anything.deep.er', '7'], { anything: { deep: { er: 7 } } }],
  [['--anything.deep', 'null'], { anything: { deep: null } }],
  [['--anything.deep', 'a', '--anything.deep', 'b', '--anything.deep', '3'], { anything: { deep: ['a', 'b', 3] } }],
  [['--json', '{"anything":{"deep":"z"}}', '--anything.deep', 'a'], { anything: { deep: 'a' } }],
])('values follow the schema: %j', async (words, params) => {
  expect((await parseMade(...words)).params).toEqual(params);
});

test('command flags may follow the method, but a parameter of the same name takes precedence', async () => {
  expect((await parse('system.ping', ['--url', 'http://h', '-o', 'json', '--timeout', '3'])).own).toEqual({
    url: 'http://h',
    output: 'json',
    timeout: '3',
  });
  expect((await parse('system.ping', ['-h'])).help).toBe(true);
  const call = await parseMade('--url', 'http://page');
  expect(call.params).toEqual({ url: 'http://page' });
  expect(call.own).toEqual({});
});

test.each([
  [['--agent', 'x'], /no parameter --agent\./, /Did you mean --agent-id/],
  [['--limit', 'many'], /--limit: expected integer, 1 to 200, got "many"/, undefined],
  [['--limit', '1.5'], /expected integer/, undefined],
  [['--kind', 'dms'], /"all", "dm", "group", "sub-agent" or "v1"/, undefined],
  [['--kind'], /--kind needs a value/, undefined],
  [['--kind', '--limit', '3'], /--kind=--limit/, undefined],
  [['dm'], /Unexpected argument "dm"/, undefined],
  [['--json', '{'], /--json is not valid JSON/, undefined],
  [['--json', '[1]'], /must be an object/, undefined],
])('session.list %j is refused', async (words, message, hint) => {
  const error: unknown = await parse('session.list', words).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ message: expect.stringMatching(message), exitCode: 2 });
  if (hint !== undefined) expect(error).toMatchObject({ hint: expect.stringMatching(hint) });
});

test('an inherited object key is an ordinary key', async () => {
  const { params } = await parseMade('--levels.__proto__', 'x', '--levels.constructor', 'y');
  expect(JSON.stringify(params)).toBe('{"levels":{"__proto__":"x","constructor":"y"}}');
  expect(({} as { x?: string }).x).toBeUndefined();
});

const examples = document.methods.flatMap((method) =>
  method.examples.map((example) => ({ name: method.name, params: Object.fromEntries(example.params.map(({ name, value }) => [name, value])) })),
);

test.each(examples)('the example in the help of $name parses to its parameters', async ({ name, params }) => {
  expect((await parse(name, flagsOfExample(findMethod(document, name), params))).params).toEqual(params);
});
