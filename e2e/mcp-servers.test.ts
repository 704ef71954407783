import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { type Product, startProduct } from './lib/product.ts';

const packages = join(import.meta.dirname, '../node_modules');
const programOf = (name: string) => join(packages, `@modelcontextprotocol/server-${name}/dist/index.js`);
const stdio = (name: string, more: { args?: string[]; env?: object; mounts?: object[] } = {}) => ({
  transport: 'stdio',
  command: 'node',
  args: [programOf(name), ...(more.args ?? [])],
  mounts: [{ path: packages }, ...(more.mounts ?? [])],
  ...(more.env !== undefined && { env: more.env }),
});

// Without the jail the daemon refuses to start a server at all.
describe.skipIf(findCommand('bwrap') === undefined)('the reference servers, in their jail', () => {
  let product: Product;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-mcp-'));
    await writeFile(join(folder, 'poem.txt'), 'Roses are red.');
    const data = { path: folder, to: '/data', writable: true };
    product = await startProduct({
      config: {
        agents: { default: { name: 'Gate', model: 'local/test-model', tools: { profile: 'none', allow: ['group:mcp'] } } },
        mcp: {
          servers: {
            everything: stdio('everything'),
            files: stdio('filesystem', { args: ['/data'], mounts: [data] }),
            memory: stdio('memory', { env: { MEMORY_FILE_PATH: '/data/memory.jsonl' }, mounts: [data] }),
          },
        },
      },
    });
  });
  afterAll(async () => {
    await product[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  /** Runs a turn in a new conversation whose model calls one tool; returns the result that the model was sent. */
  async function callTool(name: string, args: object): Promise<string> {
    const sessionKey = `someone:${name}`;
    product.provider.queue({ toolCalls: [{ id: 'call_1', name, arguments: JSON.stringify(args) }] }, { text: 'Thank you.' });
    expect(await product.call('agent.execute', { message: 'Please', sessionKey })).toMatchObject({ response: 'Thank you.', finishReason: 'stop' });
    const last = product.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
    return last.messages.findLast(({ role }) => role === 'tool')?.content ?? '';
  }

  const toolsOf = async (name: string) => {
    const { tools } = (await product.call('mcp.status', { name })) as { tools: { name: string }[] };
    return tools.map((tool) => tool.name);
  };

  test('are connected at the start', async () => {
    await expect
      .poll(() => product.call('mcp.list'), { timeout: 30_000, interval: 200 })
      .toMatchObject({
        servers: ['everything', 'files', 'memory'].map((name) => expect.objectContaining({ name, status: 'connected' })),
      });
  });

  test('everything', async () => {
    expect(await toolsOf('everything')).toEqual(expect.arrayContaining(['echo', 'get-sum']));
    expect(await callTool('mcp__everything--echo', { message: 'across the border' })).toContain('Echo: across the border');
    expect(await callTool('mcp__everything--get-sum', { a: 19, b: 23 })).toContain('The sum of 19 and 23 is 42');
  });

  test('filesystem: reads and writes its own folder, and sees no other', async () => {
    expect(await toolsOf('files')).toEqual(expect.arrayContaining(['read_text_file', 'write_file', 'list_directory']));
    expect(await callTool('mcp__files--read_text_file', { path: '/data/poem.txt' })).toContain('Roses are red.');
    await callTool('mcp__files--write_file', { path: '/data/answer.txt', content: 'Violets are blue.' });
    expect(await readFile(join(folder, 'answer.txt'), 'utf8')).toBe('Violets are blue.');
    expect(await callTool('mcp__files--list_directory', { path: product.home })).toMatch(/denied|outside/i);
  });

  test('memory: remembers a fact in another conversation, and after a restart', async () => {
    await callTool('mcp__memory--create_entities', { entities: [{ name: 'Gate', entityType: 'program', observations: ['likes tea'] }] });
    expect(await callTool('mcp__memory--search_nodes', { query: 'tea' })).toContain('likes tea');
    await product.restart();
    await expect.poll(async () => (await toolsOf('memory')).length, { timeout: 30_000, interval: 200 }).toBeGreaterThan(0);
    expect(await callTool('mcp__memory--read_graph', {})).toContain('likes tea');
  });
});
