import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AuthorizationServer,
  createStepClock,
  startAuthorizationServer,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type McpTestServer, startMcpHttpServer } from '../testing/http-server.ts';
import { type Protection, protect } from '../testing/protect.ts';

let mcp: McpTestServer;
let issuer: AuthorizationServer;
let protection: Protection;
let server: TestServer | undefined;
let homeDir: string;

beforeEach(async () => {
  mcp = await startMcpHttpServer();
  issuer = await startAuthorizationServer();
  protection = protect(mcp, issuer);
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-oauth-'));
});
afterEach(async () => {
  await stop();
  await mcp.stop();
  await issuer[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true });
});

async function stop(): Promise<void> {
  await server?.[Symbol.asyncDispose]();
  server = undefined;
}

const remote = (more: object = {}) => ({
  mcp: { servers: { far: { transport: 'http' as const, url: mcp.url, allowPrivate: true, oauth: { allowPrivate: true }, ...more } } },
});

async function start(config: TestServerOptions['config'] = remote(), more: Omit<TestServerOptions, 'config'> = {}): Promise<TestServer> {
  server = await startTestServer({
    config: { exec: { enabled: false }, agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } }, ...config },
    homeDir,
    ...more,
  });
  return server;
}

const dial = () => ({ allowAddresses: [`127.0.0.1:${mcp.port}`, `127.0.0.1:${issuer.port}`] });
const status = () => server!.client.call('mcp.status', { name: 'far' });
const begin = async () => (await server!.client.call('mcp.authorize', { name: 'far' })).authorizationUrl;

async function becomes(state: string): Promise<void> {
  await expect.poll(async () => (await status()).status).toBe(state);
}

/** What a person does in a browser; returns the page that it ends on. */
async function agree(authorizationUrl: string): Promise<{ readonly code: number; readonly page: string; readonly at: string }> {
  const at = await issuer.visit(authorizationUrl);
  const answer = await fetch(at);
  return { code: answer.status, page: await answer.text(), at };
}

async function authorized(): Promise<void> {
  await becomes('needs_authorization');
  expect((await agree(await begin())).code).toBe(200);
  await becomes('connected');
}

let calls = 0;
async function callTool(): Promise<string> {
  const { client, provider } = server!;
  provider.queue({ toolCalls: [{ id: 'c1', name: 'mcp__far--echo', arguments: '{"text":"hi"}' }] }, { text: 'ok' });
  await client.call('agent.execute', { message: 'go', sessionKey: `s:${(calls += 1)}` });
  const { messages } = provider.requests.at(-1)!.body as { messages: { role: string; content: string }[] };
  return messages.find((each) => each.role === 'tool')!.content;
}

describe('an authorization', () => {
  test('is asked for by the server, begun by a method, given in a browser, and used for every request', async () => {
    const { client } = await start();
    await becomes('needs_authorization');
    expect(await status()).toMatchObject({
      toolCount: 0,
      error: expect.stringContaining('gatehouse mcp authorize far'),
      authorization: { state: 'needed', nextStep: expect.stringContaining('gatehouse mcp authorize far') },
    });
    const begun = await client.call('mcp.authorize', { name: 'far' });
    expect(begun).toMatchObject({ name: 'far', redirectUri: `${server!.url}/oauth/callback`, scopes: ['tools:read'] });
    const query = new URL(begun.authorizationUrl).searchParams;
    expect(Object.fromEntries(query)).toMatchObject({ resource: mcp.url, scope: 'tools:read', code_challenge_method: 'S256', response_type: 'code' });
    expect((await status()).authorization).toMatchObject({ state: 'pending' });
    const { code, page } = await agree(begun.authorizationUrl);
    expect([code, page]).toEqual([200, expect.stringContaining('<h1>far is authorized</h1>')]);
    await becomes('connected');
    expect((await status()).authorization).toEqual({ state: 'authorized', authorizedAt: expect.any(Number), scopes: ['tools:read'] });
    expect(await callTool()).toContain('echo: hi');
    await expect(client.call('mcp.test', { name: 'far' })).resolves.toMatchObject({ success: true });
    const { rows } = await client.call('obs.audit.query', { actionType: 'mcp.authorize' });
    expect(rows).toMatchObject([{ outcome: 'success', target: 'far', actor: 'token:root' }]);
  });

  test('shows its secrets in no answer, event, page or file', async () => {
    const { bus, client } = await start(remote());
    const heard: string[] = [];
    bus.listen(['audit:event', 'inbox:message'], (event) => void heard.push(JSON.stringify(event)));
    await becomes('needs_authorization');
    const url = await begin();
    const { page } = await agree(url);
    await becomes('connected');
    issuer.expireAccessTokens();
    expect(await callTool()).toContain('echo: hi');
    const shown = JSON.stringify([await status(), await client.call('mcp.list', {}), await client.call('config.read', {})]);
    await stop();
    const files: string[] = [];
    for (const file of await readdir(homeDir, { recursive: true, withFileTypes: true }))
      if (file.isFile()) files.push(await readFile(join(file.parentPath, file.name), 'latin1'));
    expect(issuer.issued.length).toBeGreaterThanOrEqual(6);
    for (const secret of [...issuer.issued, new URL(url).searchParams.get('state')!])
      expect(
        [...heard, page, shown, ...files].some((text) => text.includes(secret)),
        secret,
      ).toBe(false);
  });

  test('outlives a restart, also one between the call and the browser', async () => {
    const config = remote();
    await start({ ...config, gateway: { port: 0 } });
    await becomes('needs_authorization');
    const at = await issuer.visit(await begin());
    await stop();
    await start(config);
    await becomes('needs_authorization');
    expect((await status()).authorization).toMatchObject({ state: 'pending' });
    // The port differs in tests, as it may behind a proxy.
    const answer = await fetch(new URL(new URL(at).search, `${server!.url}/oauth/callback`));
    expect(answer.status).toBe(200);
    await becomes('connected');
    await stop();
    await start(config);
    await becomes('connected');
    expect(issuer.requests.filter((each) => each === 'POST /token')).toHaveLength(1);
  });

  test('is refreshed once by calls that fail together, with rotation', async () => {
    await start(remote({ maxConcurrency: 4, readOnlyTools: ['*'] }));
    await authorized();
    issuer.expireAccessTokens();
    const held = Promise.withResolvers<void>();
    issuer.beforeToken = () => held.promise;
    const { client, provider } = server!;
    const call = (id: string) => ({ id, name: 'mcp__far--echo', arguments: '{"text":"hi"}' });
    provider.queue({ toolCalls: [call('c1'), call('c2'), call('c3')] }, { text: 'ok' });
    protection.seen.length = 0;
    const turn = client.call('agent.execute', { message: 'go', sessionKey: 'together:x' });
    await expect.poll(() => protection.seen.length).toBe(3);
    const refreshes = () => issuer.tokenRequests.filter((each) => each.get('grant_type') === 'refresh_token');
    await expect.poll(() => refreshes().length).toBe(1);
    held.resolve();
    await turn;
    const { messages } = provider.requests.at(-1)!.body as { messages: { role: string; content: string }[] };
    expect(messages.filter(({ role, content }) => role === 'tool' && content.includes('echo: hi'))).toHaveLength(3);
    expect(refreshes()).toHaveLength(1);
    expect(refreshes()[0]?.get('resource')).toBe(mcp.url);
    // The next one uses the rotated token, also after a restart.
    await stop();
    issuer.expireAccessTokens();
    issuer.beforeToken = undefined;
    await start();
    await becomes('connected');
    expect(refreshes()).toHaveLength(2);
    expect(refreshes()[0]?.get('refresh_token')).not.toBe(refreshes()[1]?.get('refresh_token'));
  });

  test('whose refresh is refused is lost: nothing retries, and its owner is alerted once', async () => {
    const { client, heard } = await start();
    const alerts = heard('inbox:message');
    await authorized();
    issuer.revokeAll();
    expect(await callTool()).toContain('needs authorization');
    await becomes('needs_authorization');
    expect((await status()).toolCount).toBe(0);
    await expect(client.call('mcp.reconnect', { name: 'far' })).rejects.toMatchObject({ code: 'unavailable' });
    await stop();
    await start();
    await becomes('needs_authorization');
    const { messages } = await server!.client.call('inbox.list', {});
    expect(messages).toMatchObject([{ source: 'mcp', level: 'alert', text: expect.stringContaining('gatehouse mcp authorize far') }]);
    expect(alerts).toHaveLength(1);
    await authorized();
  });

  test('without a refresh token ends with its access token', async () => {
    issuer.issuesRefreshTokens = false;
    await start();
    await authorized();
    issuer.expireAccessTokens();
    expect(await callTool()).toContain('needs authorization');
    expect((await server!.client.call('inbox.list', {})).messages).toMatchObject([{ text: expect.stringContaining('without a refresh token') }]);
  });

  test('stays while the authorization server is down, and is refreshed when that is back', async () => {
    await start();
    await authorized();
    issuer.expireAccessTokens();
    issuer.outage = 503;
    expect(await callTool()).toContain('could not be renewed');
    issuer.outage = undefined;
    expect(await callTool()).toContain('echo: hi');
    expect((await server!.client.call('inbox.list', {})).messages).toEqual([]);
  });

  test('stays when the server refuses even a new token, and can be tried again', async () => {
    await start();
    await authorized();
    protection.refusesAll = true;
    expect(await callTool()).toContain('needs authorization');
    await becomes('needs_authorization');
    expect((await server!.client.call('inbox.list', {})).messages).toMatchObject([{ text: expect.stringContaining('refuses its authorization') }]);
    protection.refusesAll = false;
    await expect(server!.client.call('mcp.reconnect', { name: 'far' })).resolves.toMatchObject({ status: 'connected' });
    expect((await status()).authorization?.state).toBe('authorized');
  });

  test('is extended when the server asks for more; other calls still work', async () => {
    protection.scopes = { 'tools/call': ['tools:read', 'tools:write'] };
    await start();
    await authorized();
    expect(await callTool()).toContain('needs a wider authorization (tools:read, tools:write)');
    expect(await status()).toMatchObject({
      status: 'connected',
      toolCount: 1,
      authorization: { state: 'authorized', scopes: ['tools:read'], missingScopes: ['tools:write'], nextStep: expect.any(String) },
    });
    expect(await callTool()).toContain('needs a wider authorization');
    expect((await server!.client.call('inbox.list', {})).messages).toHaveLength(1);
    const registered = issuer.requests.filter((each) => each === 'POST /register').length;
    const url = await begin();
    expect(new URL(url).searchParams.get('scope')).toBe('tools:read tools:write');
    expect((await agree(url)).code).toBe(200);
    await becomes('connected');
    expect(await callTool()).toContain('echo: hi');
    // The client of the present authorization is used again.
    expect(issuer.requests.filter((each) => each === 'POST /register')).toHaveLength(registered);
  });

  test('is deleted and revoked by mcp.deauthorize', async () => {
    const { client } = await start();
    await authorized();
    await expect(client.call('mcp.deauthorize', { name: 'far' })).resolves.toEqual({ name: 'far', revoked: true });
    await becomes('needs_authorization');
    expect(issuer.requests).toContain('POST /revoke');
    await expect(client.call('mcp.deauthorize', { name: 'far' })).rejects.toMatchObject({ code: 'not_found' });
    await stop();
    await start();
    await becomes('needs_authorization');
  });

  test('that was deleted while it was refreshed stays deleted', async () => {
    const { client } = await start();
    await authorized();
    issuer.expireAccessTokens();
    const held = Promise.withResolvers<void>();
    issuer.beforeToken = () => held.promise;
    const result = callTool();
    await expect.poll(() => issuer.tokenRequests.length).toBe(2);
    await client.call('mcp.deauthorize', { name: 'far' });
    held.resolve();
    expect(await result).not.toContain('echo: hi');
    await becomes('needs_authorization');
    await stop();
    await start();
    await becomes('needs_authorization');
  });

  test('serves the older transport too', async () => {
    protection.resource = `http://127.0.0.1:${mcp.port}/`;
    await start(remote({ transport: 'sse', url: mcp.sseUrl }));
    await becomes('needs_authorization');
    expect((await agree(await begin())).code).toBe(200);
    await becomes('connected');
    expect(await callTool()).toContain('echo: hi');
  });

  test('of a client registered by hand needs no registration', async () => {
    await issuer[Symbol.asyncDispose]();
    issuer = await startAuthorizationServer({ clients: { 'by-hand': 'a-secret-of-by-hand' }, redirectUris: ['https://gate.example/oauth/callback'] });
    protection = protect(mcp, issuer);
    delete issuer.metadata['registration_endpoint'];
    const config = { gateway: { publicUrl: 'https://gate.example/' }, ...remote() };
    const { client } = await start(config);
    await becomes('needs_authorization');
    await expect(client.call('mcp.authorize', { name: 'far' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringMatching(/registers no clients.*https:\/\/gate\.example\/oauth\/callback.*oauth\.clientId/),
    });
    await stop();
    await start({
      ...config,
      ...remote({ oauth: { allowPrivate: true, clientId: 'by-hand', clientSecret: 'a-secret-of-by-hand', scopes: ['tools:all'] } }),
    });
    await becomes('needs_authorization');
    const { authorizationUrl, redirectUri, scopes } = await server!.client.call('mcp.authorize', { name: 'far' });
    expect([redirectUri, scopes]).toEqual(['https://gate.example/oauth/callback', ['tools:all']]);
    const back = new URL(await issuer.visit(authorizationUrl));
    expect(back.origin).toBe('https://gate.example');
    expect((await fetch(`${server!.url}${back.pathname}${back.search}`)).status).toBe(200);
    await becomes('connected');
    expect(issuer.requests).not.toContain('POST /register');
    // The name is that of another server by now, with another client, whose secret the former authorization server must not learn.
    await stop();
    const other = { url: `${mcp.url}?other`, oauth: { allowPrivate: true, clientId: 'of-other', clientSecret: 'a-secret-of-other' } };
    await start({ ...config, ...remote(other) });
    await expect(server!.client.call('mcp.deauthorize', { name: 'far' })).resolves.toEqual({ name: 'far', revoked: false });
    expect(issuer.requests).not.toContain('POST /revoke');
  });
});

describe('mcp.connect', () => {
  test('stores a server that asks for authorization, which forgetting deletes again', async () => {
    const { client } = await start({}, { egress: dial() });
    await expect(client.call('mcp.connect', { name: 'far', transport: 'http', url: mcp.url })).resolves.toEqual({
      name: 'far',
      status: 'needs_authorization',
      toolCount: 0,
      tools: [],
    });
    await authorized();
    await stop();
    await start({}, { egress: dial() });
    await becomes('connected');
    await server!.client.call('mcp.disconnect', { name: 'far', forget: true });
    await expect(server!.client.call('mcp.deauthorize', { name: 'far' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('never sends tokens to another address under the same name', async () => {
    const { client } = await start({}, { egress: { allowAddresses: [`127.0.0.1:${mcp.port}`, `127.0.0.1:${issuer.port}`] } });
    await client.call('mcp.connect', { name: 'far', transport: 'http', url: mcp.url });
    await authorized();
    await client.call('mcp.disconnect', { name: 'far' });
    protection.seen.length = 0;
    await client.call('mcp.connect', { name: 'far', transport: 'http', url: `${mcp.url}?other` }).catch(() => {});
    expect(protection.seen).toEqual(['']);
  });

  test('reaches authorization servers only at public addresses', async () => {
    const { client } = await start({}, { egress: { allowAddresses: [`127.0.0.1:${mcp.port}`] } });
    await client.call('mcp.connect', { name: 'far', transport: 'http', url: mcp.url });
    await expect(client.call('mcp.authorize', { name: 'far' })).rejects.toMatchObject({ code: 'denied' });
    expect(issuer.requests).toEqual([]);
  });
});

describe('the page that a browser returns to', () => {
  const at = (query: string) => fetch(`${server!.url}/oauth/callback${query}`);

  test('accepts a state once, never after ten minutes, and none that was not made here', async () => {
    const clock = createStepClock();
    await start(remote(), { clock });
    await becomes('needs_authorization');
    const first = await issuer.visit(await begin());
    // Looking at the address uses nothing up.
    expect((await fetch(first, { method: 'HEAD' })).status).toBe(200);
    expect((await fetch(first)).status).toBe(200);
    const again = await fetch(first);
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining('no longer valid')]);
    const late = await issuer.visit(await begin());
    clock.advance(600_001);
    expect((await fetch(late)).status).toBe(400);
    const early = await issuer.visit(await begin());
    clock.step(-3_600_000);
    expect((await fetch(early)).status).toBe(400);
    for (const query of [
      '',
      '?',
      '?state=',
      '?state=x',
      `?state=${'a'.repeat(43)}&code=x`,
      '?state=%00',
      `?code=<script>&state=${'b'.repeat(5000)}`,
    ]) {
      const answer = await at(query);
      expect([query, answer.status, await answer.text()]).toEqual([query, 400, expect.not.stringContaining('<script>')]);
    }
    expect(issuer.tokenRequests).toHaveLength(1);
  });

  test('sends headers that let nothing run and nothing leak', async () => {
    await start();
    const { headers } = await at('?state=x');
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
  });

  test('says that the person declined, and repeats no text of the address', async () => {
    await start();
    await becomes('needs_authorization');
    issuer.refusal = 'access_denied';
    const { code, page } = await agree(await begin());
    expect([code, page]).toEqual([400, expect.stringContaining('it was declined')]);
    expect((await status()).authorization).toMatchObject({ state: 'needed', failure: 'it was declined' });
    issuer.refusal = '<b>evil</b>';
    expect((await agree(await begin())).page).not.toContain('evil');
    expect((await server!.client.call('obs.audit.query', { actionType: 'mcp.authorize' })).rows).toMatchObject([
      { outcome: 'failure' },
      { outcome: 'failure' },
    ]);
  });

  test('refuses an answer in the name of another authorization server', async () => {
    await start();
    await becomes('needs_authorization');
    issuer.claimedIssuer = 'https://evil.example';
    const { code, page } = await agree(await begin());
    expect([code, page]).toEqual([502, expect.stringContaining('did not come from the authorization server that was asked')]);
    expect(page).not.toContain('evil.example');
    expect(issuer.tokenRequests).toEqual([]);
  });

  test('completes nothing for a token that was revoked, or a server that was removed, meanwhile', async () => {
    await start({}, { egress: dial() });
    await server!.client.call('mcp.connect', { name: 'far', transport: 'http', url: mcp.url });
    const admin = await server!.as(['admin']);
    const { authorizationUrl } = await admin.call('mcp.authorize', { name: 'far' });
    await server!.client.call('tokens.revoke', { id: admin.tokenId });
    expect(await agree(authorizationUrl)).toMatchObject({ code: 400, page: expect.stringContaining('token that began it is no longer valid') });
    const back = await issuer.visit(await begin());
    await server!.client.call('mcp.disconnect', { name: 'far', forget: true });
    expect((await fetch(back)).status).toBe(400);
    expect(issuer.tokenRequests).toEqual([]);
  });

  test('completes each of several authorizations that were begun; the last one counts, and too many push out the first', async () => {
    await start();
    await becomes('needs_authorization');
    const backs: string[] = [];
    for (let count = 0; count < 6; count += 1) backs.push(await issuer.visit(await begin()));
    const codes = [];
    for (const back of backs) codes.push((await fetch(back)).status);
    expect(codes).toEqual([400, 200, 200, 200, 200, 200]);
    await becomes('connected');
    expect(await callTool()).toContain('echo: hi');
  });
});

describe('mcp.authorize', () => {
  test('is for administrators, and for remote servers without an Authorization header', async () => {
    await start({
      mcp: {
        servers: {
          program: { transport: 'stdio', command: 'true', enabled: false },
          headed: { transport: 'http', url: mcp.url, allowPrivate: true, headers: { Authorization: 'Bearer fixed-token-of-headed' } },
        },
      },
    });
    const { client } = server!;
    await expect(client.call('mcp.authorize', { name: 'program' })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(client.call('mcp.authorize', { name: 'headed' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('Authorization header'),
    });
    await expect(client.call('mcp.authorize', { name: 'none' })).rejects.toMatchObject({ code: 'not_found' });
    const rpc = await server!.as(['rpc']);
    for (const method of ['mcp.authorize', 'mcp.deauthorize'] as const)
      await expect(rpc.call(method, { name: 'headed' })).rejects.toMatchObject({ message: expect.stringContaining("requires 'admin'") });
    const limited = await server!.as(['admin'], { agents: ['default'] });
    await expect(limited.call('mcp.authorize', { name: 'headed' })).rejects.toMatchObject({ code: 'denied' });
  });

  test('refuses metadata whose addresses a browser must not open, or that names another resource', async () => {
    await start();
    await becomes('needs_authorization');
    const good = issuer.metadata;
    for (const evil of ['http://login.example/authorize', 'javascript:alert(1)', 'data:text/html,x']) {
      issuer.metadata = { ...good, authorization_endpoint: evil };
      await expect(begin(), evil).rejects.toMatchObject({ code: expect.stringMatching(/denied|unavailable/) });
    }
    for (const other of ['https://other.example', `${issuer.issuer}/other`]) {
      issuer.metadata = { ...good, issuer: other };
      await expect(begin()).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining('names another one') });
    }
    issuer.metadata = { ...good, code_challenge_methods_supported: ['plain'] };
    await expect(begin()).rejects.toMatchObject({ message: expect.stringContaining('S256') });
    issuer.metadata = good;
    protection.resource = 'https://evil.example/mcp';
    await expect(begin()).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining('another resource') });
    protection.resource = mcp.url;
    issuer.outage = 500;
    await expect(begin()).rejects.toMatchObject({ code: 'unavailable' });
    issuer.outage = undefined;
    expect((await agree(await begin())).code).toBe(200);
  });
});
