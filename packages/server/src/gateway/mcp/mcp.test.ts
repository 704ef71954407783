import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const accept = 'application/json, text/event-stream';
const protocolVersion = '2025-11-25';
const hello = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

const clock = createStepClock();
let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({
    clock,
    config: {
      gateway: { mcp: { maxSessions: 5, maxSessionsPerToken: 3, sessionIdleMs: 60_000 } },
      agents: { writer: { name: 'Writer', model: 'mock/mock-fast' } },
    },
  });
});
const clients: Client[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await server[Symbol.asyncDispose]();
});

/** One message as a client sends it. */
async function post(token: string, message: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { accept, 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  });
  const text = await response.text();
  const data = text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? 'null');
  return { status: response.status, headers: response.headers, body: JSON.parse(data) };
}

async function begin(token: string): Promise<string> {
  const { status, headers } = await post(token, hello);
  expect(status).toBe(200);
  const id = headers.get('mcp-session-id') ?? '';
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  return id;
}

const ping = { jsonrpc: '2.0', id: 2, method: 'ping' };
const inSession = (id: string) => ({ 'mcp-session-id': id, 'mcp-protocol-version': protocolVersion });

/** A client of the SDK; `mode` decides which version of the protocol it uses. */
async function connect(token: string, mode: 'legacy' | 'auto' = 'legacy', listChanged?: () => void): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode }, ...(listChanged && { listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: listChanged } } }) },
  );
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { authProvider: { token: async () => token } }));
  return client;
}

describe('the route', () => {
  test('accepts only mcp-client and *, and answers in the format of JSON-RPC', async () => {
    for (const scope of ['rpc', 'api', 'ws', 'admin'] as const) {
      const refused = await post((await server.as([scope])).token, hello);
      expect([refused.status, refused.body.error.data.code]).toEqual([403, 'insufficient_scope']);
    }
    expect(await post('nobody', hello)).toMatchObject({ status: 401, body: { jsonrpc: '2.0', error: { data: { code: 'unauthenticated' } } } });
    const mcp = await server.as(['mcp-client']);
    expect((await post(mcp.token, hello)).body.result).toMatchObject({
      protocolVersion,
      serverInfo: { name: 'gatehouse' },
      capabilities: { tools: { listChanged: true }, resources: {} },
    });
    // It grants nothing else.
    await expect(mcp.call('agents.list', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('refuses other hosts, other pages, bodies that are not JSON or too long, and other methods', async () => {
    expect((await post(server.token, hello, { origin: 'http://evil.example' })).status).toBe(403);
    expect((await post(server.token, '{')).body.error.code).toBe(-32700);
    expect((await post(server.token, `"${'x'.repeat(1_100_000)}"`)).status).toBe(413);
    expect((await post(server.token, hello, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post(server.token, [])).status).toBe(400);
    expect(
      (
        await post(
          server.token,
          Array.from({ length: 51 }, () => ping),
        )
      ).status,
    ).toBe(400);
    expect((await post(server.token, hello, { accept: 'application/json' })).status).toBe(406);
    const head = await fetch(`${server.url}/mcp`, { method: 'HEAD', headers: { authorization: `Bearer ${server.token}` } });
    expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET, POST, DELETE']);
  });

  test('counts each message of a batch', async () => {
    const own = await startTestServer({ config: { gateway: { rateLimit: { maxRequests: 10 } } } });
    try {
      const send = (body: unknown) =>
        fetch(`${own.url}/mcp`, {
          method: 'POST',
          headers: { accept, 'content-type': 'application/json', authorization: `Bearer ${own.token}` },
          body: JSON.stringify(body),
        });
      expect((await send(Array.from({ length: 20 }, () => ping))).status).toBe(429);
      expect((await send(hello)).status).toBe(200);
    } finally {
      await own[Symbol.asyncDispose]();
    }
  });
});

describe('sessions', () => {
  test('belong to their token and are unknown to others', async () => {
    const [ada, bob] = [await server.as(['mcp-client']), await server.as(['mcp-client'])];
    const id = await begin(ada.token);
    expect((await post(ada.token, ping, inSession(id))).body).toEqual({ jsonrpc: '2.0', id: 2, result: {} });
    const foreign = await post(bob.token, ping, inSession(id));
    const unknown = await post(bob.token, ping, inSession('11111111-1111-4111-8111-111111111111'));
    expect(foreign.status).toBe(404);
    expect(foreign.body).toEqual(unknown.body);
    expect((await post(ada.token, ping)).status).toBe(400);
    expect((await post(ada.token, ping, { ...inSession(id), 'mcp-protocol-version': '1999-01-01' })).status).toBe(400);
  });

  test('end by DELETE, and when unused for long', async () => {
    const id = await begin(server.token);
    const end = () => fetch(`${server.url}/mcp`, { method: 'DELETE', headers: { authorization: `Bearer ${server.token}`, ...inSession(id) } });
    expect((await end()).status).toBe(200);
    expect((await end()).status).toBe(404);
    const idle = await begin(server.token);
    clock.advance(50_000);
    expect((await post(server.token, ping, inSession(idle))).status).toBe(200);
    clock.advance(50_000);
    expect((await post(server.token, ping, inSession(idle))).status).toBe(200);
    clock.advance(70_000);
    expect((await post(server.token, ping, inSession(idle))).status).toBe(404);
  });

  test('are bounded: a token’s new session may end its own oldest one, never another token’s', async () => {
    const [ada, bob] = [await server.as(['mcp-client']), await server.as(['mcp-client'])];
    const first = await begin(ada.token);
    const second = await begin(ada.token);
    await begin(ada.token);
    await post(ada.token, ping, inSession(first));
    await begin(ada.token);
    expect((await post(ada.token, ping, inSession(second))).status).toBe(404);
    expect((await post(ada.token, ping, inSession(first))).status).toBe(200);
    await begin(bob.token);
    await begin(bob.token);
    const full = await post(server.token, hello);
    expect([full.status, full.body.error.data.code]).toEqual([503, 'unavailable']);
    // With all its sessions in use, a token is refused as well.
    const streams = new AbortController();
    const own = [first, await begin(ada.token), await begin(ada.token)];
    for (const id of own)
      expect(
        (await fetch(`${server.url}/mcp`, { headers: { accept, authorization: `Bearer ${ada.token}`, ...inSession(id) }, signal: streams.signal }))
          .status,
      ).toBe(200);
    expect(await post(ada.token, hello)).toMatchObject({ status: 429, body: { error: { data: { code: 'rate_limited' } } } });
    streams.abort();
    await expect.poll(async () => (await post(ada.token, hello)).status).toBe(200);
  });

  test('a request that the protocol refuses leaves no session behind', async () => {
    for (let i = 0; i < 6; i += 1) expect((await post(server.token, hello, { accept: 'application/json' })).status).toBe(406);
    await begin(server.token);
  });

  test('end with their token, including their streams', async () => {
    const ada = await server.as(['mcp-client']);
    const id = await begin(ada.token);
    const stream = await fetch(`${server.url}/mcp`, { headers: { accept, authorization: `Bearer ${ada.token}`, ...inSession(id) } });
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    await server.client.call('tokens.revoke', { id: ada.tokenId });
    expect(await stream.text()).toBe('');
    expect((await post(ada.token, ping, inSession(id))).status).toBe(401);
  });
});

describe.each(['legacy', 'auto'] as const)('agents as tools (%s)', (mode) => {
  test('are listed for callers that may use them, and answer in a conversation of the token', async () => {
    const ada = await server.as(['mcp-client'], { agents: ['writer'] });
    const client = await connect(ada.token, mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(mode === 'auto' ? '2026-07-28' : protocolVersion);
    const { tools } = await client.listTools();
    expect(tools.map(({ name, title }) => [name, title])).toEqual([['agent_writer', 'Writer']]);
    expect(JSON.stringify(tools)).not.toContain('$ref');
    server.provider.queue({ text: 'A first answer.' }, { text: 'A second answer.' });
    const first = await client.callTool({ name: 'agent_writer', arguments: { message: 'Say something' } });
    expect(first.content).toEqual([{ type: 'text', text: 'A first answer.' }]);
    const second = await client.callTool({ name: 'agent_writer', arguments: { message: 'And more' } });
    expect(second.structuredContent).toMatchObject({
      response: 'A second answer.',
      finishReason: 'stop',
      sessionKey: `${ada.tokenId}:mcp`,
      tokensUsed: { total: expect.any(Number) },
    });
    expect(JSON.stringify(server.provider.requests.at(-1)?.body)).toContain('A first answer.');
    const other = await client.callTool({ name: 'agent_writer', arguments: { message: 'Hello', sessionKey: 'desk:plans' } });
    expect(other.structuredContent).toMatchObject({ sessionKey: 'desk:plans' });
    expect(JSON.stringify(server.provider.requests.at(-1)?.body)).not.toContain('A first answer.');
  });

  test('foreign and unknown agents look the same; mistakes are named in an error result', async () => {
    const ada = await server.as(['mcp-client'], { agents: ['writer'] });
    const client = await connect(ada.token, mode);
    const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args });
    await expect(call('agent_default', { message: 'x' })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Unknown tool: agent_default'),
    });
    await expect(call('agent_nobody', { message: 'x' })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Unknown tool: agent_nobody'),
    });
    const wrong = await call('agent_writer', { message: '', colour: 'red' });
    expect(wrong).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^invalid_params: .*colour/) }] });
    await server.client.call('agents.suspend', { agentId: 'writer' });
    expect(await call('agent_writer', { message: 'x' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^precondition_failed: /) }],
    });
    await server.client.call('agents.resume', { agentId: 'writer' });
    server.provider.queue({ status: 500, error: { message: 'secret detail' } }, { status: 500 }, { status: 500 }, { status: 500 });
    const failed = await call('agent_writer', { message: 'x' });
    expect(failed.isError).toBe(true);
  });

  test('a list that changes is announced', async () => {
    let changes = 0;
    const client = await connect(server.token, mode, () => (changes += 1));
    expect((await client.listTools()).tools).toHaveLength(2);
    await expect
      .poll(async () => {
        await server.client.call('agents.create', { agentId: `late-${Math.random().toString(36).slice(2)}`, config: {} });
        return changes;
      })
      .toBeGreaterThan(0);
    expect((await client.listTools()).tools.length).toBeGreaterThan(2);
  });

  test('a cancelled call ends its turn', async () => {
    const client = await connect(server.token, mode);
    server.provider.queue({ hang: true });
    const leave = new AbortController();
    const call = client.callTool({ name: 'agent_writer', arguments: { message: 'Wait' } }, { signal: leave.signal });
    await expect.poll(() => server.provider.requests.length).toBe(1);
    leave.abort('no longer needed');
    await expect(call).rejects.toThrow();
    await expect.poll(() => server.provider.aborted()).toBe(1);
  });
});

test('a cancelled call ends its stream without an answer; in a batch the others are still answered', async () => {
  server.provider.queue({ hang: true }, { hang: true });
  const id = await begin(server.token);
  const call = (n: number) => ({ jsonrpc: '2.0', id: n, method: 'tools/call', params: { name: 'agent_writer', arguments: { message: 'Wait' } } });
  const cancel = (n: number) => post(server.token, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: n } }, inSession(id));
  const alone = post(server.token, call(7), inSession(id));
  await expect.poll(() => server.provider.requests.length).toBe(1);
  expect((await cancel(7)).status).toBe(202);
  expect((await alone).body).toBeNull();
  const batch = fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { accept, 'content-type': 'application/json', authorization: `Bearer ${server.token}`, ...inSession(id) },
    body: JSON.stringify([call(8), { ...ping, id: 9 }]),
  }).then((response) => response.text());
  await expect.poll(() => server.provider.requests.length).toBe(2);
  await cancel(8);
  expect(await batch).toContain('{"result":{},"jsonrpc":"2.0","id":9}');
});

test('a client that disconnects ends its call, and so does a session that ends', async () => {
  server.provider.queue({ hang: true }, { hang: true });
  const call = (n: number) => ({ jsonrpc: '2.0', id: n, method: 'tools/call', params: { name: 'agent_writer', arguments: { message: 'Wait' } } });
  const id = await begin(server.token);
  const leave = new AbortController();
  const gone = fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { accept, 'content-type': 'application/json', authorization: `Bearer ${server.token}`, ...inSession(id) },
    body: JSON.stringify(call(7)),
    signal: leave.signal,
  });
  expect((await gone).status).toBe(200);
  await expect.poll(() => server.provider.requests.length).toBe(1);
  leave.abort();
  await expect.poll(() => server.provider.aborted()).toBe(1);
  const left = post(server.token, call(8), inSession(id));
  await expect.poll(() => server.provider.requests.length).toBe(2);
  await fetch(`${server.url}/mcp`, { method: 'DELETE', headers: { authorization: `Bearer ${server.token}`, ...inSession(id) } });
  await expect.poll(() => server.provider.aborted()).toBe(2);
  expect((await left).body).toBeNull();
});

test('reports the progress of a turn, also while it is silent', async () => {
  const client = await connect(server.token);
  const answered = Promise.withResolvers<void>();
  server.provider.queue({ text: ['One ', 'two ', 'three.'], after: answered.promise, paceMs: 50 });
  const reports: { progress: number; message?: string | undefined }[] = [];
  const call = client.callTool({ name: 'agent_writer', arguments: { message: 'Count' } }, { onprogress: (progress) => reports.push(progress) });
  await expect.poll(() => server.provider.requests.length).toBe(1);
  clock.advance(10_000);
  await expect.poll(() => reports.length).toBe(1);
  expect(reports[0]?.message).toBe('0 tool calls, 0 characters, 10 s');
  clock.advance(1_000);
  answered.resolve();
  await call;
  expect(reports.length).toBeGreaterThan(1);
  expect(reports.map(({ progress }) => progress)).toEqual(reports.map((_, index) => index + 1));
  expect(reports.at(-1)?.message).toMatch(/[1-9]\d* characters/);
});

describe('workspaces as resources', () => {
  const notFound = { code: -32602, message: expect.stringContaining('Resource not found') };
  const workspace = (agentId: string) => join(server.homeDir, 'workspaces', agentId);

  async function fill(agentId: string, files: Record<string, string | Buffer>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      const file = join(workspace(agentId), path);
      await mkdir(join(file, '..'), { recursive: true });
      await writeFile(file, content);
    }
  }

  async function all(client: Client): Promise<{ uris: string[]; pages: number }> {
    const uris: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await client.request({ method: 'resources/list', params: cursor === undefined ? {} : { cursor } });
      uris.push(...page.resources.map(({ uri }) => uri));
      cursor = page.nextCursor;
      pages += 1;
    } while (cursor !== undefined);
    return { uris, pages };
  }

  test('are listed in pages and read, without the agent’s definition and hidden files', async () => {
    const many = Object.fromEntries(Array.from({ length: 230 }, (_, i) => [`data/deep/${String(i).padStart(3, '0')}.csv`, 'a,b']));
    await fill('writer', { ...many, 'documents/a b#ü.md': '# Hi', 'zeta.bin': Buffer.from([0, 255, 1]) });
    await fill('writer', {
      'USER.md': 'private',
      'Soul.md': 'x',
      'documents/USER.md': 'a file like others',
      'skills/a/SKILL.md': 'x',
      '.gatehouse/x': 'x',
      'data/.hidden': 'x',
    });
    await symlink('/etc/hostname', join(workspace('writer'), 'data/link'));
    const client = await connect((await server.as(['mcp-client'], { agents: ['writer'] })).token);
    const { uris, pages } = await all(client);
    expect(pages).toBe(3);
    expect(new Set(uris).size).toBe(uris.length);
    expect(uris.filter((uri) => !uri.includes('/deep/'))).toEqual(
      ['documents/USER.md', 'documents/a%20b%23%C3%BC.md', 'zeta.bin'].map((path) => `gatehouse://agents/writer/workspace/${path}`),
    );
    expect(uris).toHaveLength(233);
    const read = async (path: string) => (await client.readResource({ uri: `gatehouse://agents/writer/workspace/${path}` })).contents[0];
    expect(await read('documents/a%20b%23%C3%BC.md')).toMatchObject({ mimeType: 'text/markdown', text: '# Hi' });
    expect(await read('zeta.bin')).toMatchObject({ mimeType: 'application/octet-stream', blob: 'AP8B' });
    const missing = await read('documents/none.md').catch((error: unknown) => error);
    for (const path of [
      'USER.md',
      'user.md',
      'skills/a/SKILL.md',
      '.gatehouse/x',
      'data/.hidden',
      'data/link',
      '../../config.yaml',
      '%2e%2e/%2e%2e/config.yaml',
      'data%2fdeep%2f000.csv',
      'data',
      '%ff',
    ])
      await expect(read(path), path).rejects.toMatchObject(notFound);
    expect(missing).toMatchObject(notFound);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['gatehouse://agents/writer/workspace/{+path}']);
  });

  test('of agents that the token may not use are unknown; a file that is too large is refused', async () => {
    await fill('default', { 'output/secret.txt': 'x' });
    await fill('writer', { 'output/large.txt': 'x'.repeat(1_048_577) });
    const client = await connect((await server.as(['mcp-client'], { agents: ['writer'] })).token);
    expect((await all(client)).uris).toEqual(['gatehouse://agents/writer/workspace/output/large.txt']);
    await expect(client.readResource({ uri: 'gatehouse://agents/default/workspace/output/secret.txt' })).rejects.toMatchObject(notFound);
    await expect(client.readResource({ uri: 'gatehouse://agents/writer/workspace/output/large.txt' })).rejects.toThrow(/larger than 1048576 bytes/);
    await expect(client.request({ method: 'resources/list', params: { cursor: 'nonsense' } })).rejects.toMatchObject({ code: -32602 });
  });
});

test('a drain ends idle streams and lets calls finish', async () => {
  const id = await begin(server.token);
  const stream = await fetch(`${server.url}/mcp`, { headers: { accept, authorization: `Bearer ${server.token}`, ...inSession(id) } });
  const answered = Promise.withResolvers<void>();
  server.provider.queue({ text: 'Done all the same.', after: answered.promise });
  const call = post(
    server.token,
    { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'agent_writer', arguments: { message: 'x' } } },
    inSession(id),
  );
  await expect.poll(() => server.provider.requests.length).toBe(1);
  const drained = server.server.drain();
  expect(await stream.text()).toBe('');
  answered.resolve();
  expect((await call).body.result.content[0].text).toBe('Done all the same.');
  await drained;
});
