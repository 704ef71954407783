import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';

const secret = 'gh_a-secret-that-is-shown-once-and-never-again';
const created = { id: 'ci', secret, scopes: ['rpc'], createdAt: 1_790_000_000_000, message: 'Store the secret now.' };
const answers = rpcAnswers({
  'tokens.list': {
    tokens: [
      { id: 'ops', scopes: ['*'], source: 'config' },
      { id: 'ci', scopes: ['rpc', 'api'], source: 'created', agents: ['scout'], person: 'ada', createdAt: 1_790_000_000_000 },
    ],
    total: 2,
  },
  'tokens.create': created,
  'tokens.rotate': { ...created, rotated: true },
  'tokens.revoke': { id: 'ci', revoked: true, message: 'Gone.' },
});

async function open() {
  const server = await startServer(answers);
  const user = await createUser();
  return {
    params: () => server.requests.map(({ body }) => JSON.parse(body).params),
    run: (...args: string[]) => user.run({ args: ['tokens', ...args], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('the list is a table, or JSON', async () => {
  await using session = await open();
  const { out } = await session.run('list');
  expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['ID', 'PERSON', 'SCOPES', 'AGENTS', 'FROM', 'CREATED', 'EXPIRES', 'LAST USED'],
    ['ops', '-', '*', 'all', 'config', '-', '-', '-'],
    ['ci', 'ada', 'rpc api', 'scout', 'created', '2026-09-21 14:13 UTC', '-', '-'],
    [''],
  ]);
  expect(JSON.parse((await session.run('list', '-o', 'json')).out)).toHaveLength(2);
});

test('only the new secret goes to standard output', async () => {
  await using session = await open();
  const outcome = await session.run('create', '--id', 'ci', '--scope', 'rpc', 'api', '--agent', 'scout', '--person', 'ada', '--expires-in', '2h');
  expect(outcome).toMatchObject({ code: 0, out: `${secret}\n`, err: expect.stringContaining('Token ci, scopes rpc.') });
  expect(session.params()).toEqual([
    { id: 'ci', scopes: ['rpc', 'api'], agents: ['scout'], person: 'ada', expiresAt: 1_790_000_000_000 + 7_200_000 },
  ]);
  expect((await session.run('rotate', 'ci')).out).toBe(`${secret}\n`);
});

test('without a scope the token gets the default scope, never an empty list', async () => {
  await using session = await open();
  await session.run('create');
  expect(session.params()).toEqual([{ scopes: ['rpc'] }]);
});

test('an invalid period is refused before anything is created', async () => {
  await using session = await open();
  expect(await session.run('create', '--expires-in', 'soon')).toMatchObject({ code: 2, err: expect.stringContaining('such as 90d') });
  expect(session.params()).toEqual([]);
});

test('revoking reports the token', async () => {
  await using session = await open();
  expect((await session.run('revoke', 'ci')).out).toBe('Revoked ci.\n');
  expect((await session.run('revoke')).code).toBe(2);
});
