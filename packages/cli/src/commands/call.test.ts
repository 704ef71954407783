import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';

async function open(results: Record<string, unknown>) {
  const server = await startServer(rpcAnswers(results));
  const user = await createUser();
  return {
    server,
    run: (args: readonly string[], input = '') => user.run({ args, input, env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } }),
    user,
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('a call sends the parameters and prints the result', async () => {
  await using session = await open({
    'agents.list': { agents: ['default'] },
    'session.list': { sessions: [], total: 0, offset: 0, limit: 5, hasMore: false },
  });
  expect(await session.run(['call', 'agents.list'])).toEqual({ code: 0, out: '{\n  "agents": [\n    "default"\n  ]\n}\n', err: '' });
  expect((await session.run(['call', '-o', 'json', 'session.list', '--limit', '5', '--agent-id', 'scout'])).code).toBe(0);
  expect(JSON.parse(session.server.requests[1]?.body ?? '')).toMatchObject({ method: 'session.list', params: { limit: 5, agentId: 'scout' } });
});

test('parameters come from a file or from standard input too', async () => {
  await using session = await open({ 'agents.get': {} });
  await writeFile(join(session.user.dir, 'params.json'), '{"agentId":"one"}');
  await session.run(['call', 'agents.get', '--json', '@params.json']);
  await session.run(['call', 'agents.get', '--json', '-'], '{"agentId":"two"}');
  expect(session.server.requests.map(({ body }) => JSON.parse(body).params)).toEqual([{ agentId: 'one' }, { agentId: 'two' }]);
  expect(await session.run(['call', 'agents.get', '--json', '@nowhere.json'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('nowhere.json'),
  });
});

test('a server error is printed in one line and sets the exit code', async () => {
  await using session = await open({
    'agents.get': {
      error: {
        code: -32602,
        message: 'Invalid params',
        data: { code: 'invalid_params', issues: [{ path: 'agentId', message: 'expected an agent id' }] },
      },
    },
    'agents.list': { error: { code: -32603, message: "Insufficient scope: requires 'admin'", data: { code: 'insufficient_scope' } } },
    'session.delete': { error: { code: -32001, message: 'No such conversation.', data: { code: 'not_found' } } },
    'system.ping': { error: { code: -32603, message: 'Internal error', data: { code: 'internal', requestId: 'rq_9' } } },
  });
  expect(await session.run(['call', 'agents.get', '--agent-id', '!'])).toEqual({
    code: 2,
    out: '',
    err: 'error: Invalid params; agentId: expected an agent id\n',
  });
  expect(await session.run(['call', 'agents.list'])).toMatchObject({
    code: 4,
    err: expect.stringMatching(/^error: Insufficient scope: requires 'admin'\nhint: /),
  });
  expect(await session.run(['call', 'session.delete'])).toMatchObject({ code: 1, err: 'error: No such conversation\n' });
  expect(await session.run(['call', 'system.ping'])).toMatchObject({ code: 1, err: 'error: Internal error (request rq_9)\n' });
});

test('a wrong token is distinguished from a missing daemon', async () => {
  await using server = await startServer(
    (_seen, response) => void response.writeHead(401).end('{"error":"No such token.","code":"unauthenticated","requestId":"rq"}'),
  );
  await using user = await createUser();
  const outcome = await user.run({ args: ['call', 'system.ping'], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } });
  expect(outcome).toMatchObject({ code: 4, err: expect.stringMatching(/^error: No such token\nhint: .*--token-file/) });
  expect(outcome.err).not.toContain(token);
});

test('a misspelled method suggests the nearest one and sends nothing', async () => {
  await using session = await open({});
  expect(await session.run(['call', 'sesion.list'])).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean session.list?') });
  expect(await session.run(['call'])).toMatchObject({ code: 2, err: expect.stringContaining('gatehouse call --list') });
  expect(await session.run(['call', 'system.ping', '--timeout', 'soon'])).toMatchObject({ code: 2 });
  expect(session.server.requests).toEqual([]);
});

test('the list shows every method with scope and risk', async () => {
  await using session = await open({});
  const { out } = await session.run(['call', '--list']);
  expect(out.split('\n')[0]).toMatch(/^METHOD +SCOPE +RISK +WHAT IT DOES$/);
  expect(out).toMatch(/^session\.delete +admin +destructive +\S/m);
  const machine = await session.run(['call', '--list', '--output', 'json']);
  expect(JSON.parse(machine.out)).toContainEqual(expect.objectContaining({ name: 'system.ping', 'x-scope': 'rpc' }));
});

test('help of the command', async () => {
  await using session = await open({});
  const { code, out } = await session.run(['call', '--help']);
  expect(code).toBe(0);
  await expect(out).toMatchFileSnapshot('testdata/call-help.txt');
});

test.each(['system.ping', 'agent.execute', 'models.list', 'tokens.create'])('help of %s', async (name) => {
  await using session = await open({});
  const { code, out } = await session.run(['call', name, '--help']);
  expect(code).toBe(0);
  await expect(out).toMatchFileSnapshot(`testdata/call-help-${name}.txt`);
});
