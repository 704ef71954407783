import type { MethodName } from '@gatehouse/contract';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
let foreign: { conversationRef: string; sessionKey: string };
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
  const owner = await server.as(['rpc']);
  foreign = await owner.call('agent.execute', { message: 'private words', sessionKey: 'ada:desk' });
});
afterAll(() => server[Symbol.asyncDispose]());

async function bytes(token: string, method: MethodName, params: object): Promise<{ status: number; body: string }> {
  const response = await fetch(`${server.url}/rpc`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return { status: response.status, body: await response.text() };
}

const unknownRef = `cv_${'A'.repeat(43)}`;
const rpcMethods = ['session.status', 'session.history', 'session.export', 'session.reset', 'session.compact', 'session.fork'] as const;
const adminMethods = ['session.delete', 'session.reset_conversation'] as const;

describe.each([...rpcMethods, ...adminMethods])('%s', (method) => {
  const admin = adminMethods.some((name) => name === method);

  test('answers a foreign reference with the same bytes as an unknown one', async () => {
    // Administrators reach every principal, but only the agents of their token.
    const { token } = await server.as([admin ? '*' : 'rpc'], admin ? { agents: ['other'] } : {});
    const other = await bytes(token, method, { conversationRef: foreign.conversationRef });
    const unknown = await bytes(token, method, { conversationRef: unknownRef });
    expect({ ...other, body: other.body.replaceAll(foreign.conversationRef, unknownRef) }).toEqual(unknown);
    if (method !== 'session.reset_conversation') expect(unknown.body).toContain('Conversation not found');
  });

  test('answers a foreign key like an unused one', async () => {
    const { token } = await server.as([admin ? '*' : 'rpc'], admin ? { agents: ['other'] } : {});
    const used = await bytes(token, method, { sessionKey: foreign.sessionKey });
    const unused = await bytes(token, method, { sessionKey: 'nob:desk' });
    const without = ({ status, body }: typeof used) => ({ status, body: body.replaceAll(/cv_[\w-]{43}/g, '') });
    expect(without(used)).toEqual(without(unused));
  });

  test('a reference for another agent or key than named in the call is unknown', async () => {
    for (const mismatch of [{ agentId: 'other' }, { sessionKey: 'bob:desk' }]) {
      const answer = await bytes(server.token, method, { conversationRef: foreign.conversationRef, ...mismatch });
      const unknown = await bytes(server.token, method, { conversationRef: unknownRef, ...mismatch });
      if (method === 'session.reset_conversation') expect(JSON.parse(answer.body).result).toMatchObject({ messagesDeleted: 0 });
      else expect(answer).toEqual(unknown);
    }
  });

  test('rejects malformed addresses by name', async () => {
    for (const [path, value] of [
      ['conversationRef', 'cv_short'],
      ['conversationRef', `cv_${'A'.repeat(44)}`],
      ['sessionKey', 'no-separator'],
      ['sessionKey', { userId: 'a' }],
      ['agentId', '../x'],
    ] as const) {
      const { body } = await bytes(server.token, method, { [path]: value });
      expect(JSON.parse(body).error).toMatchObject({ code: -32602, data: { issues: [{ path: expect.stringContaining(path) }] } });
    }
    expect(JSON.parse((await bytes(server.token, method, { tenantId: 'x' })).body).error.code).toBe(-32602);
  });

  test('requires its scope', async () => {
    const { token } = await server.as([admin ? 'rpc' : 'ws']);
    const { body } = await bytes(token, method, { conversationRef: foreign.conversationRef });
    expect(JSON.parse(body).error).toMatchObject({ code: -32603, message: `Insufficient scope: requires '${admin ? 'admin' : 'rpc'}'` });
  });
});

test('the foreign conversation is unchanged', async () => {
  const { messages } = await server.client.call('session.history', { conversationRef: foreign.conversationRef });
  expect(messages.map(({ content }) => content)[0]).toBe('private words');
  expect(messages).toHaveLength(2);
});
