import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { agentTemplates } from '@gatehouse/contract/agent-templates';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

async function open() {
  const server = await startTestServer();
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  return {
    server,
    run: (...args: string[]) => user.run({ args: ['agents', ...args], env }),
    file: (...path: string[]) => readFile(join(server.homeDir, 'workspaces', ...path), 'utf8'),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('an agent is created from a template; flags win over it, and another template replaces its files', async () => {
  await using session = await open();
  const { run, file, server } = session;
  const made = await run('create', 'scout', '--template', 'coder', '--name', 'Scout', '--config', '{"maxSteps": 9}');
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^Created scout; its folder is .*\nWrote AGENTS\.md and ROLE\.md\.\n$/) });
  expect((await server.client.call('agents.get', { agentId: 'scout' })).config).toMatchObject({
    name: 'Scout',
    maxSteps: 9,
    exec: { network: true },
    tools: { profile: 'none', allow: expect.arrayContaining(['group:shell']) },
  });
  expect(await file('scout', 'ROLE.md')).toContain('software engineer');

  const preview = await run('update', 'scout', '--template', 'researcher', '--dry-run');
  expect(preview).toMatchObject({ code: 0, out: expect.stringContaining('Nothing was changed.') });
  expect(await file('scout', 'ROLE.md')).toContain('software engineer');
  expect((await run('update', 'scout', '--template', 'researcher')).out).toBe('Changed scout.\nWrote AGENTS.md and ROLE.md.\n');
  expect(await file('scout', 'ROLE.md')).toContain('You are a researcher');
});

test('an unknown template is refused before anything is created', async () => {
  await using session = await open();
  expect(await session.run('create', 'scout', '--template', 'codr')).toMatchObject({
    code: 2,
    err: `error: Unknown template "codr": expected ${agentTemplates.map(({ id }) => id).join(', ')}.\nhint: Did you mean \`--template coder\`?\n`,
  });
  expect((await session.server.client.call('agents.list')).agents).toEqual(['default']);
});

test('when the prompt files cannot be written the message says how to complete the agent', async () => {
  await using session = await open();
  const { server, run } = session;
  await server.client.call('workspace.writeFile', { agentId: 'default', filePath: 'documents/a.txt', content: 'a' });
  const { writeFile } = await import('node:fs/promises');
  // A file where the folder of the agent would be.
  await writeFile(join(server.homeDir, 'workspaces', 'blocked'), '');
  const failed = await run('create', 'blocked', '--template', 'coder');
  expect(failed.code).toBe(1);
  expect(failed.err).toMatch(/^error: The agent blocked has the settings of the template, but not all of its prompt files: /);
  expect(failed.err).toContain('hint: `gatehouse agents update blocked --template coder` completes it.');
});
