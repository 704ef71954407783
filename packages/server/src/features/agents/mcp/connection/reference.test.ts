import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';

const modules = join(import.meta.dirname, '../../../../../../../node_modules');
const program = (name: string) => join(modules, '@modelcontextprotocol', name, 'dist/index.js');

test('the reference servers run in the jail, with their configured folders', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-mcp-'));
  await mkdir(join(dir, 'notes'));
  await writeFile(join(dir, 'notes/a.txt'), 'written in a note');
  const stdio = { transport: 'stdio' as const, command: 'node', readOnlyTools: ['*'] };
  await using server = await startTestServer({
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
      mcp: {
        servers: {
          everything: { ...stdio, args: [program('server-everything'), 'stdio'], mounts: [{ path: modules }] },
          files: {
            ...stdio,
            args: [program('server-filesystem'), '/notes'],
            mounts: [{ path: modules }, { path: join(dir, 'notes'), to: '/notes' }],
          },
          memory: { ...stdio, args: [program('server-memory')], mounts: [{ path: modules }], env: { MEMORY_FILE_PATH: '/tmp/memory.jsonl' } },
        },
      },
    },
  });
  const { client, provider } = server;
  const states = async () => (await client.call('mcp.list', {})).servers.map(({ name, status }) => `${name} ${status}`);
  await expect.poll(states, { timeout: 20_000, interval: 100 }).toEqual(['everything connected', 'files connected', 'memory connected']);
  const call = async (name: string, args: object) => {
    provider.queue({ toolCalls: [{ id: 'c1', name, arguments: JSON.stringify(args) }] }, { text: 'done' });
    await client.call('agent.execute', { message: 'go', sessionKey: `s:${name}` });
    const { messages } = provider.requests.at(-1)!.body as { messages: { role: string; content: string }[] };
    return messages.find((each) => each.role === 'tool')!.content;
  };
  expect(await call('mcp__everything--echo', { message: 'hello' })).toContain('Echo: hello');
  expect(await call('mcp__files--read_text_file', { path: '/notes/a.txt' })).toContain('written in a note');
  expect(await call('mcp__files--write_file', { path: '/notes/b.txt', content: 'x' })).toMatch(/EROFS|read-only/i);
  expect(await call('mcp__memory--create_entities', { entities: [{ name: 'Gate', entityType: 'house', observations: ['old'] }] })).toContain('Gate');
  expect(await call('mcp__memory--read_graph', {})).toContain('Gate');
  await rm(dir, { recursive: true });
}, 60_000);
