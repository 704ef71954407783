import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { standardFolders, templateNames } from '@gatehouse/contract';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { other: {}, third: {} } } });
});
afterAll(() => server[Symbol.asyncDispose]());

const agentId = 'default';
const call: TestServer['client']['call'] = (method, ...args) => server.client.call(method, ...args);
const dirOf = (id: string) => join(server.homeDir, 'workspaces', id);

describe('workspace methods', () => {
  it('set up a workspace once, and never overwrite', async () => {
    expect(await call('workspace.status', { agentId })).toMatchObject({
      dir: dirOf(agentId),
      exists: false,
      hasGitRepo: false,
      isBootstrapped: false,
    });
    expect(existsSync(dirOf(agentId))).toBe(false);
    mkdirSync(dirOf(agentId), { recursive: true });
    writeFileSync(join(dirOf(agentId), 'SOUL.md'), 'mine');
    expect(await call('workspace.init', { agentId })).toEqual({ initialized: true, dir: dirOf(agentId) });
    expect(readFileSync(join(dirOf(agentId), 'SOUL.md'), 'utf8')).toBe('mine');
    expect(readdirSync(dirOf(agentId)).toSorted()).toEqual(['.gatehouse', ...templateNames, ...standardFolders, 'skills'].toSorted());
    expect(readdirSync(join(server.homeDir, 'workspaces')).toSorted()).toEqual(['.git-default', 'default']);
    expect(statSync(join(server.homeDir, 'workspaces', '.git-default')).mode & 0o777).toBe(0o700);
    const status = await call('workspace.status', { agentId });
    expect(status).toMatchObject({
      exists: true,
      hasGitRepo: true,
      isBootstrapped: false,
      state: { version: 1, bootstrapSeededAt: expect.any(Number) },
    });
    expect(status.files.map(({ name, present, untouched }) => [name, present, untouched])).toEqual(
      templateNames.map((name) => [name, true, name !== 'SOUL.md']),
    );
    writeFileSync(join(dirOf(agentId), 'ROLE.md'), 'role');
    await call('workspace.init', { agentId });
    expect(readFileSync(join(dirOf(agentId), 'ROLE.md'), 'utf8')).toBe('role');
  });

  it('detect the end of the first conversation, and do not start it again', async () => {
    await call('workspace.writeFile', { agentId, filePath: 'IDENTITY.md', content: '- Name: [your name]\n' });
    expect(await call('workspace.status', { agentId })).toMatchObject({ isBootstrapped: false });
    await call('workspace.writeFile', { agentId, filePath: 'IDENTITY.md', content: '- **Name:** Ada\n' });
    const done = await call('workspace.status', { agentId });
    expect(done).toMatchObject({ isBootstrapped: true, state: { onboardingCompletedAt: expect.any(Number) } });
    expect((await call('workspace.status', { agentId })).state).toEqual(done.state);
    await call('workspace.deleteFile', { agentId, filePath: 'BOOTSTRAP.md' });
    await call('workspace.init', { agentId });
    expect(existsSync(join(dirOf(agentId), 'BOOTSTRAP.md'))).toBe(false);
  });

  it('read any file as bytes, with the type that they show', async () => {
    const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
    mkdirSync(join(dirOf(agentId), 'media'), { recursive: true });
    writeFileSync(join(dirOf(agentId), 'media/a.txt'), png);
    expect(await call('workspace.readBytes', { agentId, filePath: 'media/a.txt' })).toEqual({
      base64: png.toString('base64'),
      contentType: 'image/png',
      sizeBytes: png.length,
    });
    writeFileSync(join(dirOf(agentId), 'media/b.html'), '<script>1</script>');
    expect(await call('workspace.readBytes', { agentId, filePath: 'media/b.html' })).toMatchObject({ contentType: 'application/octet-stream' });
    writeFileSync(join(dirOf(agentId), 'media/big.bin'), Buffer.alloc(8 * 1024 * 1024 + 1));
    await expect(call('workspace.readBytes', { agentId, filePath: 'media/big.bin' })).rejects.toMatchObject({ code: 'payload_too_large' });
    await expect(call('workspace.readBytes', { agentId, filePath: '.gatehouse/state.json' })).rejects.toMatchObject({ code: 'not_found' });
  });

  it.for(['http', 'websocket'])('read, write, list and delete over %s', async (transport) => {
    const socket = transport === 'websocket' ? server.socket() : undefined;
    const client = socket ?? server.client;
    expect(await client.call('workspace.writeFile', { agentId, filePath: 'documents/deep/plan.md', content: '# Hü\n' })).toEqual({
      written: true,
      sizeBytes: 6,
    });
    expect(await client.call('workspace.readFile', { agentId, filePath: 'documents/deep/plan.md' })).toEqual({ content: '# Hü\n', sizeBytes: 6 });
    expect(await client.call('workspace.listDir', { agentId, subdir: 'documents' })).toEqual({
      entries: [{ name: 'deep', type: 'directory', modifiedAt: expect.any(Number) }],
      truncated: false,
    });
    expect(await client.call('workspace.listDir', { agentId, subdir: 'documents/deep' })).toEqual({
      entries: [{ name: 'plan.md', type: 'file', sizeBytes: 6, modifiedAt: expect.any(Number) }],
      truncated: false,
    });
    const top = (await client.call('workspace.listDir', { agentId })).entries.map(({ name }) => name);
    expect(top).toContain('SOUL.md');
    expect(top).not.toContain('.gatehouse');
    expect(await client.call('workspace.deleteFile', { agentId, filePath: 'documents/deep/plan.md' })).toEqual({ deleted: true });
    await expect(client.call('workspace.deleteFile', { agentId, filePath: 'documents/deep/plan.md' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(client.call('workspace.deleteFile', { agentId, filePath: 'documents' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await client.call('workspace.resetFile', { agentId, fileName: 'ROLE.md' })).toEqual({ reset: true, fileName: 'ROLE.md' });
    expect(readFileSync(join(dirOf(agentId), 'ROLE.md'), 'utf8')).toContain('# Role');
    socket?.close();
  });

  it('enforce their limits', async () => {
    const file = join(dirOf(agentId), 'data/file');
    writeFileSync(file, Buffer.alloc(1024 * 1024, 'a'));
    expect((await call('workspace.readFile', { agentId, filePath: 'data/file' })).sizeBytes).toBe(1024 * 1024);
    writeFileSync(file, Buffer.alloc(1024 * 1024 + 1, 'a'));
    await expect(call('workspace.readFile', { agentId, filePath: 'data/file' })).rejects.toMatchObject({
      code: 'payload_too_large',
      message: 'File exceeds 1MB read limit',
    });
    writeFileSync(file, Buffer.from([0xff, 0xfe]));
    await expect(call('workspace.readFile', { agentId, filePath: 'data/file' })).rejects.toMatchObject({ code: 'unsupported_media_type' });
    const write = (content: string) => call('workspace.writeFile', { agentId, filePath: 'data/file', content });
    expect(await write('ü'.repeat(256 * 1024))).toEqual({ written: true, sizeBytes: 512 * 1024 });
    await expect(write(`${'ü'.repeat(256 * 1024)}x`)).rejects.toMatchObject({
      code: 'payload_too_large',
      message: 'Content exceeds 512KB write limit',
    });
    for (let index = 0; index < 2001; index += 1) writeFileSync(join(dirOf(agentId), 'output', `${index}`), '');
    const listed = await call('workspace.listDir', { agentId, subdir: 'output' });
    expect([listed.entries.length, listed.truncated]).toEqual([2000, true]);
  });

  it('refuse files that they must not show or change', async () => {
    await expect(call('workspace.listDir', { agentId, subdir: 'skills' })).rejects.toMatchObject({
      code: 'invalid_params',
      message: expect.stringMatching(/^Directory not in allowlist: skills/),
    });
    await expect(call('workspace.resetFile', { agentId, fileName: 'NOTES.md' })).rejects.toMatchObject({
      code: 'invalid_params',
      message: 'Not a template file: NOTES.md',
    });
    for (const filePath of ['.gatehouse/workspace.json', 'projects/a/.git/config']) {
      await expect(call('workspace.readFile', { agentId, filePath })).rejects.toMatchObject({ code: 'not_found' });
      await expect(call('workspace.writeFile', { agentId, filePath, content: '' })).rejects.toMatchObject({ code: 'denied' });
      await expect(call('workspace.deleteFile', { agentId, filePath })).rejects.toMatchObject({ code: 'denied' });
      await expect(call('workspace.git.restore', { agentId, filePath })).rejects.toMatchObject({ code: 'denied' });
    }
    await expect(call('workspace.writeFile', { agentId, filePath: 'skills/a/SKILL.md', content: '' })).rejects.toMatchObject({ code: 'denied' });
  });

  const everyMethod = [
    ['workspace.status', {}],
    ['workspace.readFile', { filePath: 'SOUL.md' }],
    ['workspace.listDir', {}],
    ['workspace.git.status', {}],
    ['workspace.git.log', {}],
    ['workspace.git.diff', {}],
    ['workspace.writeFile', { filePath: 'a.md', content: '' }],
    ['workspace.deleteFile', { filePath: 'SOUL.md' }],
    ['workspace.resetFile', { fileName: 'SOUL.md' }],
    ['workspace.init', {}],
    ['workspace.git.commit', {}],
    ['workspace.git.restore', { filePath: 'SOUL.md' }],
  ] as const;

  it('answer for an unreachable agent as for a missing one', async () => {
    const narrow = await server.as(['admin'], { agents: ['other'] });
    await narrow.call('workspace.init', { agentId: 'other' });
    for (const [method, params] of everyMethod) {
      const said = await Promise.all(
        ['default', 'nobody'].map((id) => narrow.callByName(method, { ...params, agentId: id }).catch((error: unknown) => error)),
      );
      expect(said[0], method).toMatchObject({ code: 'not_found', message: 'Agent not found: default' });
      expect(said[1], method).toMatchObject({ code: 'not_found', message: 'Agent not found: nobody' });
    }
    expect(readdirSync(join(server.homeDir, 'workspaces'))).not.toContain('nobody');
  });

  it('let a plain token read and not write', async () => {
    const plain = await server.as(['rpc']);
    for (const [method, params] of everyMethod) {
      const outcome = await plain.callByName(method, { ...params, agentId: 'other' }).then(
        () => 'ok',
        (error: { code: string }) => error.code,
      );
      const reads = ['status', 'readFile', 'listDir', 'git.status', 'git.log', 'git.diff'].some((name) => method === `workspace.${name}`);
      expect([method, outcome]).toEqual([method, reads ? 'ok' : 'insufficient_scope']);
    }
  });

  it('write an audit row for every change, and none for refused calls', async () => {
    const heard = server.heard('audit:event');
    await call('workspace.init', { agentId: 'third' });
    await call('workspace.writeFile', { agentId: 'third', filePath: 'a.md', content: 'abc' });
    await call('workspace.git.commit', { agentId: 'third', paths: ['a.md'] });
    await call('workspace.git.restore', { agentId: 'third', filePath: 'a.md' });
    await call('workspace.resetFile', { agentId: 'third', fileName: 'SOUL.md' });
    await call('workspace.deleteFile', { agentId: 'third', filePath: 'a.md' });
    await call('workspace.deleteFile', { agentId: 'third', filePath: 'a.md' }).catch(() => {});
    expect(heard.map(({ actionType, classification, target, metadata }) => [actionType, classification, target, metadata])).toEqual([
      ['workspace.init', 'mutate', 'third', {}],
      ['workspace.writeFile', 'mutate', 'third', { filePath: 'a.md', sizeBytes: 3 }],
      ['workspace.git.commit', 'mutate', 'third', { paths: ['a.md'] }],
      ['workspace.git.restore', 'destructive', 'third', { filePath: 'a.md' }],
      ['workspace.resetFile', 'destructive', 'third', { fileName: 'SOUL.md' }],
      ['workspace.deleteFile', 'destructive', 'third', { filePath: 'a.md' }],
    ]);
  });
});

describe('the prompt', () => {
  const promptOf = async (origin: 'rpc' | 'v1', id = agentId): Promise<string> => {
    const before = server.provider.requests.length;
    if (origin === 'rpc') await call('agent.execute', { agentId: id, message: 'Hello', sessionKey: `ada:${id}` });
    else
      await fetch(`${server.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: id, messages: [{ role: 'user', content: 'Hello' }] }),
      }).then((response) => response.text());
    return JSON.stringify(server.provider.requests[before]?.body);
  };

  it('contains the files, at once after a change, and USER.md only for turns of the owner', async () => {
    await call('workspace.init', { agentId: 'other' });
    const untouched = await promptOf('rpc', 'other');
    expect(untouched).toContain('BOOTSTRAP.md: the workspace is new');
    expect(untouched).not.toMatch(/SOUL\.md:|gatehouse-template|HEARTBEAT/);
    expect(await promptOf('v1', 'other')).not.toContain('BOOTSTRAP.md');
    for (const [filePath, content] of [
      ['SOUL.md', 'Speak like a pirate.'],
      ['IDENTITY.md', '- Name: Anne'],
      ['USER.md', 'Works as a diver.'],
      ['AGENTS.md', 'Never hurry.'],
      ['ROLE.md', 'Keeps the log.'],
      ['TOOLS.md', 'The printer is upstairs.'],
      ['HEARTBEAT.md', '- Look at the tide.'],
    ] as const)
      await call('workspace.writeFile', { agentId: 'other', filePath, content });
    const prompt = await promptOf('rpc', 'other');
    expect(prompt).toMatch(
      /Speak like a pirate\.[^]*Name: Anne[^]*Works as a diver\.[^]*Never hurry\.[^]*Keeps the log\.[^]*The printer is upstairs\.[^]*Look at the tide\.[^]*Text from outside/,
    );
    expect(prompt).not.toContain('BOOTSTRAP.md');
    const stranger = await promptOf('v1', 'other');
    expect(stranger).toContain('Speak like a pirate.');
    expect(stranger).not.toMatch(/diver|USER\.md/);
  });

  it('is cut, and omitted when disabled', async () => {
    await call('workspace.writeFile', { agentId: 'other', filePath: 'SOUL.md', content: `${'x'.repeat(150)}TAIL` });
    await call('agents.update', { agentId: 'other', config: { workspace: { maxFileChars: 100 } } });
    const cut = await promptOf('rpc', 'other');
    expect(cut).toContain('only its first 100 characters are shown');
    expect(cut).not.toContain('TAIL');
    await call('agents.update', { agentId: 'other', config: { workspace: { promptFiles: false } } });
    expect(await promptOf('rpc', 'other')).not.toMatch(/xxx|workspace files/);
    rmSync(dirOf('other'), { recursive: true });
  });
});
