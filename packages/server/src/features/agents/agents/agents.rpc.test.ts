import { writeFileSync } from 'node:fs';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
const pasted = `gh-${'p'.repeat(40)}`;
beforeAll(async () => {
  server = await startTestServer({
    config: { agents: { default: { model: 'mock/mock-fast' }, filed: { name: 'Filed', maxSteps: 7 } } },
    secrets: [pasted],
  });
});
afterAll(() => server[Symbol.asyncDispose]());

describe('agents', () => {
  test('an agent is created, answers, is changed, and its new turns fail after it was deleted', async () => {
    const { client } = server;
    const added = server.heard('agent:hot_added');
    const removed = server.heard('agent:hot_removed');
    const audited = server.heard('audit:event');
    await client.call('agents.create', { agentId: 'scout', config: { name: 'Scout', model: 'mock/mock-other' } });
    expect((await client.call('agents.list')).agents).toEqual(['default', 'filed', 'scout']);

    const reply = await client.call('agent.execute', { message: 'hello', agentId: 'scout', sessionKey: { userId: 'ada', channelId: 'desk' } });
    expect(reply.finishReason).toBe('stop');
    expect(server.provider.requests.at(-1)?.body).toMatchObject({ model: 'mock-other' });

    const updated = await client.call('agents.update', { agentId: 'scout', config: { model: 'mock-fast', temperature: 0.5 } });
    expect(updated).toMatchObject({ updated: true, config: { name: 'Scout', temperature: 0.5 } });
    await client.call('agent.execute', { message: 'again', agentId: 'scout' });
    expect(server.provider.requests.at(-1)?.body).toMatchObject({ model: 'mock-fast', temperature: 0.5 });

    await client.call('agents.delete', { agentId: 'scout' });
    await expect(client.call('agent.execute', { message: 'gone?', agentId: 'scout' })).rejects.toMatchObject({ code: 'not_found' });
    const history = await client.call('session.history', { agentId: 'scout', sessionKey: 'ada:desk' });
    expect(history.messages.map((message) => message.content)).toEqual(['hello', reply.response]);
    expect(added.map((event) => event.agentId)).toEqual(['scout']);
    expect(removed.map((event) => event.agentId)).toEqual(['scout']);
    expect(audited.map((event) => event.actionType)).toEqual(['agents.create', 'agents.update', 'agents.delete']);
  });

  test('a live secret in its instructions is not shown, and what was read without it is not written back', async () => {
    const { client } = server;
    const instructions = `Use ${pasted} for the printer.`;
    const made = await client.call('agents.create', { agentId: 'pasted', config: { instructions } });
    const read = await client.call('agents.get', { agentId: 'pasted' });
    for (const { config } of [made, read]) expect(config.instructions).toBe('Use [REDACTED] for the printer.');
    await expect(
      client.call('agents.update', { agentId: 'pasted', config: { instructions: `${read.config.instructions} Please.` } }),
    ).rejects.toMatchObject({ code: 'invalid_params', message: expect.stringContaining('redaction marker') });
    await client.call('agents.delete', { agentId: 'pasted' });
  });

  test('a dry run validates and changes nothing', async () => {
    const { client } = server;
    const dry = await client.call('agents.update', { agentId: 'filed', config: { maxSteps: 9 }, dryRun: true });
    expect(dry).toMatchObject({ updated: false, dryRun: true, config: { maxSteps: 9 } });
    expect((await client.call('agents.get', { agentId: 'filed' })).config.maxSteps).toBe(7);
  });

  test('a bad configuration names the field and what was expected, and nothing changes', async () => {
    const { client } = server;
    await expect(client.call('agents.update', { agentId: 'filed', config: { maxSteps: 0, colour: 'red' } })).rejects.toMatchObject({
      code: 'invalid_params',
      issues: expect.arrayContaining([expect.objectContaining({ path: 'config.maxSteps' })]),
    });
    await expect(client.call('agents.create', { agentId: 'lost', config: { model: 'nobody/nothing' } })).rejects.toMatchObject({
      code: 'invalid_params',
      issues: [expect.objectContaining({ path: 'config.model' })],
    });
    await expect(client.call('agents.create', { agentId: 'Bad Id' })).rejects.toMatchObject({ code: 'invalid_params' });
    expect((await client.call('agents.list')).agents).toEqual(['default', 'filed']);
  });

  test('null resets a key, objects merge', async () => {
    const { client } = server;
    await client.call('agents.update', { agentId: 'filed', config: { tools: { deny: ['write'] }, temperature: 1 } });
    const { config } = await client.call('agents.update', { agentId: 'filed', config: { temperature: null, tools: { allow: ['web_fetch'] } } });
    expect(config.temperature).toBeUndefined();
    expect(config.tools).toMatchObject({ allow: ['web_fetch'], deny: ['write'] });
  });

  test('a suspended agent accepts no turns; existing and missing agents are distinguished', async () => {
    const { client } = server;
    await client.call('agents.suspend', { agentId: 'filed' });
    await expect(client.call('agent.execute', { message: 'hello', agentId: 'filed' })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(client.call('agents.suspend', { agentId: 'filed' })).rejects.toMatchObject({ code: 'precondition_failed' });
    await client.call('agents.resume', { agentId: 'filed' });
    expect((await client.call('agent.execute', { message: 'hello', agentId: 'filed' })).finishReason).toBe('stop');
    await expect(client.call('agents.create', { agentId: 'filed' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(client.call('agents.get', { agentId: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(client.call('agents.delete', { agentId: 'default' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: 'Cannot delete default agent: default',
    });
  });

  test('changes survive a restart', async () => {
    const first = await startTestServer();
    await first.client.call('agents.create', { agentId: 'kept', config: { name: 'Kept' } });
    await first.client.call('agents.update', { agentId: 'default', config: { name: 'Renamed' } });
    await first.client.call('agents.suspend', { agentId: 'kept' });
    await first.server[Symbol.asyncDispose]();
    const second = await startTestServer({ homeDir: first.homeDir });
    expect(await second.client.call('agents.get', { agentId: 'kept' })).toMatchObject({
      config: { name: 'Kept' },
      suspended: true,
      source: 'file',
    });
    expect(await second.client.call('agents.get', { agentId: 'default' })).toMatchObject({ config: { name: 'Renamed' }, source: 'file' });
    await second[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
  });

  test('a wrong value of a change is refused with what was expected and what was found', async () => {
    const wrong = server.client.call('agents.update', { agentId: 'filed', config: { maxSteps: 'many' }, dryRun: true });
    await expect(wrong).rejects.toMatchObject({
      code: 'invalid_params',
      issues: [{ path: 'config.maxSteps', message: expect.stringMatching(/^expected an integer .*, found "many"$/) }],
    });
  });

  test('an unknown key of a change is refused by its path, also one that is to be reset', async () => {
    const { client } = server;
    for (const [config, path] of [
      [{ colour: 'red' }, 'config.colour'],
      [{ colour: null }, 'config.colour'],
      [{ tools: { profil: null } }, 'config.tools.profil'],
      [{ constructor: { prototype: { x: 1 } } }, 'config.constructor'],
    ] as const) {
      await expect(client.call('agents.update', { agentId: 'filed', config, dryRun: true })).rejects.toMatchObject({
        code: 'invalid_params',
        issues: [{ path, message: expect.stringMatching(/^unknown key; (did you mean|expected one of)/) }],
      });
    }
  });

  test('agents of a changed file come, change and go; whether one is suspended is kept for when it returns', async () => {
    const { client, configuration } = server;
    const text = configuration.readText();
    const write = async (changed: string) => {
      writeFileSync(configuration.file, changed);
      await configuration.reload('test');
    };
    const get = (agentId: string) => client.call('agents.get', { agentId });
    const announced = [server.heard('agent:hot_added'), server.heard('agent:hot_removed')];
    await client.call('agents.suspend', { agentId: 'filed' });
    await write(text.replace('"filed"', '"later"'));
    await expect(get('filed')).rejects.toMatchObject({ code: 'not_found' });
    expect(await get('later')).toMatchObject({ source: 'file', suspended: false, config: { name: 'Filed' } });
    await write(text.replace('"maxSteps": 7', '"maxSteps": 8'));
    expect(await get('filed')).toMatchObject({ source: 'file', suspended: true, config: { name: 'Filed', maxSteps: 8 } });
    expect(announced.map((events) => events.map(({ agentId }) => agentId))).toEqual([
      ['later', 'filed'],
      ['filed', 'later'],
    ]);
    await write(text);
    await client.call('agents.resume', { agentId: 'filed' });
    expect(await get('filed')).toMatchObject({ suspended: false, config: { maxSteps: 7 } });
  });

  test('of parallel creations of one id exactly one succeeds', async () => {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => server.client.call('agents.create', { agentId: 'race' })));
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    await server.client.call('agents.delete', { agentId: 'race' });
  });

  test('a token that is limited to some agents sees and uses only those', async () => {
    const limited = await server.as(['admin'], { agents: ['filed'] });
    expect((await limited.call('agents.list')).agents).toEqual(['filed']);
    await expect(limited.call('agents.get', { agentId: 'default' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(limited.call('agent.execute', { message: 'hello' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(limited.call('agents.create', { agentId: 'wider' })).rejects.toMatchObject({ code: 'denied' });
  });
});
