import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';
import { createUser } from '../testing/test-io.ts';

const at = 1_790_000_000_000;
const stored = { set: true, key: 'A_KEY', storage: 'encrypted', restarting: false, restart: [] as string[] };
const secret = { source: 'secretstore', createdAt: at, updatedAt: at, usageCount: 1, usedBy: [] as string[] };
const listed = {
  secrets: [
    { ...secret, name: 'A_KEY', description: 'Searches', usedBy: ['providers.search.apiKey'], lastUsedAt: at, shadowed: true },
    { ...secret, name: 'B_KEY', unreadable: true },
  ],
  total: 3,
  truncated: true,
};

async function open(results: Record<string, unknown> = {}) {
  const server = await startServer(rpcAnswers({ 'env.list': listed, 'env.set': stored, 'env.remove': { removed: true, key: 'A_KEY' }, ...results }));
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  return {
    params: () => server.requests.map(({ body }) => JSON.parse(body).params),
    run: (args: string[], more: Partial<Parameters<typeof user.run>[0]> = {}) => user.run({ args: ['secrets', ...args], env, ...more }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A terminal on which a person types. */
function typed(text: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin });
  stdin.write(text);
  return { io: { stdin } };
}

test('the list is the default: a table with uses and faults, or JSON', async () => {
  await using session = await open();
  const { out } = await session.run([]);
  expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['NAME', 'FOR', 'USED BY', 'CHANGED', 'LAST USED', 'EXPIRES', 'NOTE'],
    ['A_KEY', 'Searches', 'providers.search.apiKey', '2026-09-21 14:13 UTC', '2026-09-21 14:13 UTC', '-', 'the environment has it, too, and wins'],
    ['B_KEY', '-', '-', '2026-09-21 14:13 UTC', '-', '-', 'sealed with another install key: set it again'],
    ['2 of 3.'],
    [''],
  ]);
  expect(JSON.parse((await session.run(['list', 'A*', '--limit', '2', '-o', 'json'])).out)).toMatchObject({ total: 3 });
  expect(session.params()).toEqual([{ limit: 100 }, { filter: 'A*', limit: 2 }]);
});

test('a value comes from standard input, without its last line break, or from a prompt that does not show it', async () => {
  await using session = await open();
  expect(await session.run(['set', 'A_KEY', '--description', 'Searches', '--expires-in', '2h'], { input: 'two\nlines\n' })).toMatchObject({
    code: 0,
    out: 'Stored A_KEY.\n',
  });
  const asked = await session.run(['set', 'A_KEY'], typed('hidden value\r'));
  expect(asked).toMatchObject({ code: 0, out: 'Stored A_KEY.\n', err: 'Value of A_KEY (not shown): \n' });
  expect(session.params()).toEqual([
    { key: 'A_KEY', value: 'two\nlines', description: 'Searches', expiresAt: at + 7_200_000 },
    { key: 'A_KEY', value: 'hidden value' },
  ]);
});

test('no value is sent when there is none, or it is an argument', async () => {
  await using session = await open();
  for (const more of [{ input: '' }, { input: '\n' }, typed('\u0003'), typed('\u0004')])
    expect((await session.run(['set', 'A_KEY'], more)).code).toBe(2);
  expect((await session.run(['set', 'A_KEY', 'value'], { input: 'value' })).code).toBe(2);
  expect(session.params()).toEqual([]);
});

test.each([
  [{ restart: ['gateway.host'] }, 'Stored A_KEY. These keys need a restart (`gatehouse call gateway.restart`): gateway.host\n'],
  [{ shadowed: true }, 'Stored A_KEY. It has no effect while the environment of the daemon has a variable of this name.\n'],
  [{ notApplied: 'config.yaml:1:1: x' }, 'Stored A_KEY, which is not in force: config.yaml:1:1: x\n'],
])('the answer says what remains to be done: %j', async (more, out) => {
  await using session = await open({ 'env.set': { ...stored, ...more } });
  expect((await session.run(['set', 'A_KEY'], { input: 'value' })).out).toBe(out);
});

test('a removal asks first', async () => {
  await using session = await open();
  expect((await session.run(['remove', 'A_KEY'])).code).toBe(2);
  expect((await session.run(['remove', 'A_KEY', '--yes'])).out).toBe('Removed A_KEY.\n');
  expect(session.params()).toEqual([{ key: 'A_KEY' }]);
});
