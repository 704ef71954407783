import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';
import { createUser } from '../testing/test-io.ts';

const url = 'https://login.example/authorize?state=abc';
const begun = { name: 'search', authorizationUrl: url, redirectUri: 'http://127.0.0.1:4766/oauth/callback', scopes: [], expiresAt: 1 };
const pending = { name: 'search', status: 'needs_authorization', toolCount: 0, authorization: { state: 'pending' } };
const done = { name: 'search', status: 'connected', toolCount: 3, authorization: { state: 'authorized', authorizedAt: 5 } };

/** Answers `mcp.status` with one state after the other. */
async function open(...states: object[]) {
  let asked = 0;
  const others = rpcAnswers({ 'mcp.authorize': begun, 'mcp.deauthorize': { name: 'search', revoked: false } });
  const server = await startServer((seen, response) => {
    const { id, method } = JSON.parse(seen.body) as { id: number; method: string };
    if (method !== 'mcp.status') return others(seen, response);
    return { jsonrpc: '2.0', id, result: states[Math.min(asked++, states.length - 1)] };
  });
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  return {
    run: (args: string[], more: Partial<Parameters<typeof user.run>[0]> = {}) => user.run({ args: ['mcp', ...args], env, ...more }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('authorize prints the address, waits for the person, and says what the server offers', async () => {
  await using session = await open(pending, done);
  const { code, out } = await session.run(['authorize', 'search']);
  expect(out).toContain(`  ${url}\n`);
  expect(out).toMatch(/search is authorized and connected: 3 tools\.\n$/);
  expect(code).toBe(0);
});

test('authorize opens a browser on a terminal, except with --no-open', async () => {
  await using session = await open(pending, done);
  const opened: string[] = [];
  const io = { stdout: Object.assign(new PassThrough(), { isTTY: true }), openBrowser: (address: string) => void opened.push(address) };
  await session.run(['authorize', 'search'], { io });
  expect(opened).toEqual([url]);
  await using other = await open(pending, done);
  await other.run(['authorize', 'search', '--no-open'], { io });
  expect(opened).toHaveLength(1);
});

test('authorize fails when the person declines, or nobody agrees in time', async () => {
  await using declined = await open(pending, { ...pending, authorization: { state: 'needed', failure: 'it was declined\u001b[31m' } });
  const { code, out } = await declined.run(['authorize', 'search']);
  expect([code, out]).toEqual([1, expect.stringContaining('search was not authorized: it was declined\\u001b[31m.')]);
  await using late = await open(pending, { ...pending, authorization: { state: 'needed' } });
  expect(await late.run(['authorize', 'search'])).toMatchObject({ code: 1, out: expect.stringContaining('Nobody agreed in time') });
});

test('authorize with JSON returns the address at once', async () => {
  await using session = await open(pending);
  const { code, out } = await session.run(['authorize', 'search', '--output', 'json']);
  expect([code, JSON.parse(out)]).toEqual([0, begun]);
});

test('deauthorize says whether the tokens were revoked', async () => {
  await using session = await open(pending);
  expect((await session.run(['deauthorize', 'search'])).out).toContain('did not confirm');
});
