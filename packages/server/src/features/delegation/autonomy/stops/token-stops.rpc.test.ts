import { createClient } from '@gatehouse/client';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';

/** Starts a server whose sub-agents wait for a model that never answers. */
async function start(): Promise<TestServer> {
  const server = await startTestServer({ config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
  server.provider.setAnswer(() => ({ hang: true }));
  return server;
}

async function holderOf(server: TestServer, grant: { readonly scopes: ['rpc'] | ['admin']; readonly agents?: string[] }) {
  const { id, secret } = await server.client.call('tokens.create', grant);
  return { id, client: createClient({ url: server.url, token: secret }) };
}

const running = (server: TestServer, runId: string) => expect.poll(async () => (await server.client.call('session.run_status', { runId })).status);

test('revoking a token ends what it started, and nothing of others', async () => {
  await using server = await start();
  const holder = await holderOf(server, { scopes: ['rpc'] });
  const { runId, rootRunId } = await holder.client.call('session.spawn', { task: 'Wait' });
  const { runId: other } = await server.client.call('session.spawn', { task: 'Wait' });
  for (const id of [runId, other]) await running(server, id).toBe('running');
  await server.client.call('tokens.revoke', { id: holder.id });
  await running(server, runId).toBe('failed');
  expect(await server.client.call('session.run_status', { runId })).toMatchObject({ completion: { endReason: 'killed' } });
  expect((await server.client.call('run.list', {})).runs.find((root) => root.rootRunId === rootRunId)).toMatchObject({ state: 'revoked' });
  await running(server, other).toBe('running');
  await server.client.call('subagent.kill', { target: other });
});

test('work that a token started continues when the token is rotated', async () => {
  await using server = await start();
  const holder = await holderOf(server, { scopes: ['rpc'] });
  const { runId } = await holder.client.call('session.spawn', { task: 'Wait' });
  await running(server, runId).toBe('running');
  await server.client.call('tokens.rotate', { id: holder.id });
  // A later revocation has been processed by the time that it is answered.
  const { id, client } = await holderOf(server, { scopes: ['rpc'] });
  const second = await client.call('session.spawn', { task: 'Wait' });
  await server.client.call('tokens.revoke', { id });
  await running(server, second.runId).toBe('failed');
  await running(server, runId).toBe('running');
  await server.client.call('subagent.kill', { target: runId });
});

test('runs of other agents do not exist for an admin bound to some agents', async () => {
  await using server = await start();
  const { client } = await holderOf(server, { scopes: ['admin'], agents: ['other'] });
  const { runId, rootRunId } = await server.client.call('session.spawn', { task: 'Wait', agent: 'default' });
  await running(server, runId).toBe('running');
  for (const method of ['run.kill', 'autonomy.evict'] as const)
    await expect(client.call(method, { rootRunId })).rejects.toMatchObject({ message: expect.stringContaining(`Run not found: ${rootRunId}`) });
  expect(await client.call('lease.revoke', { rootRunId })).toEqual({ revoked: 0 });
  await running(server, runId).toBe('running');
  const { rootRunId: own } = await client.call('session.spawn', { task: 'Wait', agent: 'other' });
  expect(await client.call('run.kill', { rootRunId: own })).toEqual({ killed: 2 });
  expect(await server.client.call('lease.revoke', { rootRunId })).toEqual({ revoked: 1 });
  await server.client.call('run.kill', { rootRunId });
});
