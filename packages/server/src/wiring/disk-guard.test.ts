import type { Health } from '@gatehouse/contract';
import { createStepClock, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import type { FreeSpace } from '../kernel/disk-space.ts';
import { openCron } from '../features/unattended/cron/testing/open-cron.ts';

test('with too little free space new work is refused, reading and deleting continue, and it recovers automatically', async () => {
  const clock = createStepClock();
  let free: FreeSpace = { bytes: 1e9, inodes: 1e5 };
  await using server = await startTestServer({ clock, freeSpace: async () => free });
  const { client } = server;
  await client.call('workspace.writeFile', { agentId: 'default', filePath: 'documents/notes.md', content: 'one' });
  await client.call('agent.execute', { message: 'hello', sessionKey: 'u:c' });
  const health = async () => (await fetch(`${server.url}/health`)).json() as Promise<Health>;
  const lookAgain = async (degraded: boolean) => {
    clock.advance(10_000);
    await expect.poll(async () => (await health()).checks['storage']?.status).toBe(degraded ? 'degraded' : 'ok');
  };

  free = { bytes: 1e6 };
  await lookAgain(true);
  expect(await health()).toMatchObject({ checks: { storage: { status: 'degraded', detail: 'the disk is nearly full' } } });
  const asked = server.provider.requests.length;
  const refused = { rpcCode: -32006, code: 'unavailable', message: expect.stringMatching(/disk of .* is nearly full: 1\.0 MB are free/) };
  await expect(client.call('workspace.writeFile', { agentId: 'default', filePath: 'documents/notes.md', content: 'two' })).rejects.toMatchObject(
    refused,
  );
  await expect(client.call('agent.execute', { message: 'hello again' })).rejects.toMatchObject(refused);
  const authorization = `Bearer ${server.token}`;
  const post = (path: string, type: string, body: string) =>
    fetch(`${server.url}${path}`, { method: 'POST', headers: { authorization, 'content-type': type }, body });
  expect((await post('/media', 'text/plain', 'a file')).status).toBe(503);
  const chat = await post(
    '/v1/chat/completions',
    'application/json',
    JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'x' }] }),
  );
  expect([chat.status, await chat.json()]).toMatchObject([503, { error: { message: expect.stringContaining('nearly full') } }]);
  expect(server.provider.requests).toHaveLength(asked);
  expect(await client.call('workspace.readFile', { agentId: 'default', filePath: 'documents/notes.md' })).toMatchObject({ content: 'one' });
  const { sessions } = await client.call('session.list', {});
  await client.call('session.delete', { conversationRef: sessions[0]?.conversationRef ?? '' });

  free = { bytes: 1e9 };
  await lookAgain(false);
  free = { bytes: 1e9, inodes: 9 };
  await lookAgain(true);
  expect(await health()).toMatchObject({ checks: { storage: { status: 'degraded', detail: 'the disk has nearly no inodes left' } } });
  await expect(client.call('agent.execute', { message: 'hello again' })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/disk of .* has nearly no inodes left: 9 more files can be created/),
  });
  free = { bytes: 1e9, inodes: 1e5 };
  await lookAgain(false);
  await client.call('workspace.writeFile', { agentId: 'default', filePath: 'documents/notes.md', content: 'two' });
});

test('a job that becomes due while space is low waits, and runs once when there is space again', async () => {
  let free = 1e9;
  await using server = await openCron({ freeSpace: async () => ({ bytes: free }) });
  const everyHour = { kind: 'every', everyMs: 3_600_000, anchorMs: server.clock.now() } as const;
  await server.client.call('cron.add', { name: 'slow', schedule: everyHour, payload: { kind: 'agent_turn', message: 'Go' } });
  free = 1e6;
  await server.pass(3_600_000 + 60_000, 30_000);
  const state = async () => (await server.client.call('cron.status', {})).activeClaimCount;
  await expect.poll(async () => (await server.pass(5_000, 5_000), await state())).toBe(1);
  expect([await server.ended('slow'), server.provider.requests]).toEqual([[], []]);
  free = 1e9;
  await server.pass(20_000, 5_000);
  expect(await server.runs('slow')).toMatchObject([{ status: 'completed' }]);
  expect(server.provider.requests).toHaveLength(1);
});
