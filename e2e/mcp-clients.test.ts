import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

let product: Product;
const clients: Client[] = [];
beforeAll(async () => {
  product = await startProduct({ config: { gateway: { tokens: scopedTokens } } });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await product[Symbol.asyncDispose]();
});

/** Connects a client of another SDK, one major version older than the daemon's. */
async function connect(token = tokenOf('mcp-client')): Promise<Client> {
  const client = new Client({ name: 'third-party', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL(`${product.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  // The SDK's types don't match under exactOptionalPropertyTypes.
  await client.connect(transport as Transport);
  clients.push(client);
  return client;
}

describe('a third-party MCP client', () => {
  test('connects with a token of scope mcp-client only', async () => {
    const client = await connect();
    expect(client.getServerVersion()).toMatchObject({ name: 'gatehouse', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    await client.ping();
    await expect(connect(tokenOf('rpc'))).rejects.toThrow(/Insufficient scope: requires 'mcp-client'/);
    await expect(connect('not-a-token')).rejects.toThrow(/401|bearer token/);
  });

  test('lists the agents, calls one, and receives progress', async () => {
    const client = await connect();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['agent_default']);
    await mkdir(join(product.home, 'workspaces/default/output'), { recursive: true });
    await writeFile(join(product.home, 'workspaces/default/output/report.md'), '# Report\n\nAll is well.\n');
    const reported = Promise.withResolvers<void>();
    const beforeDelta = async (nth: number) => (nth === 2 ? reported.promise : undefined);
    product.provider.queue(
      { toolCalls: [{ id: 'call_1', name: 'read', arguments: '{"path":"output/report.md"}' }] },
      { text: ['It ', 'says that ', 'all is well.'], beforeDelta },
    );
    const updates: { progress: number; message?: string | undefined }[] = [];
    const result = await client.callTool({ name: 'agent_default', arguments: { message: 'What does the report say?' } }, undefined, {
      onprogress(progress) {
        updates.push(progress);
        if (/[1-9]\d* characters/.test(progress.message ?? '')) reported.resolve();
      },
    });
    expect(result).toMatchObject({
      content: [{ type: 'text', text: 'It says that all is well.' }],
      structuredContent: { response: 'It says that all is well.', finishReason: 'stop', conversationRef: expect.stringMatching(/^cv_/) },
    });
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('All is well.');
    expect(updates.length).toBeGreaterThan(1);
    expect(updates.map(({ message }) => message).join('\n')).toMatch(/1 tool call, [1-9]\d* characters/);
    expect(updates.every(({ progress }, index) => index === 0 || progress > (updates[index - 1]?.progress ?? 0))).toBe(true);
  });

  test('cancels a call, which ends its turn', async () => {
    const client = await connect();
    const [asked, aborted] = [product.provider.requests.length, product.provider.aborted()];
    product.provider.queue({ hang: true });
    const leave = new AbortController();
    const call = client.callTool({ name: 'agent_default', arguments: { message: 'Take your time' } }, undefined, { signal: leave.signal });
    await expect.poll(() => product.provider.requests.length).toBe(asked + 1);
    leave.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => product.provider.aborted()).toBe(aborted + 1);
  });

  test('reads the workspace, and is notified of a new agent', async () => {
    const client = await connect();
    const file = join(product.home, 'workspaces/default/documents/notes.md');
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, 'Buy milk.');
    const uri = 'gatehouse://agents/default/workspace/documents/notes.md';
    expect((await client.listResources()).resources.map((resource) => resource.uri)).toContain(uri);
    expect((await client.readResource({ uri })).contents).toEqual([{ uri, mimeType: 'text/markdown', text: 'Buy milk.' }]);
    await expect(client.readResource({ uri: 'gatehouse://agents/default/workspace/../../config.yaml' })).rejects.toThrow(/not found/);
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (changes += 1));
    await product.call('agents.create', { agentId: 'late', config: {} });
    await expect.poll(() => changes).toBe(1);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['agent_default', 'agent_late']);
  });

  test('reconnects after a restart of the daemon', async () => {
    const client = await connect();
    await client.ping();
    await product.restart();
    await expect(client.listTools()).rejects.toThrow(/Session not found/);
    expect((await (await connect()).listTools()).tools.length).toBeGreaterThan(0);
  });
});
