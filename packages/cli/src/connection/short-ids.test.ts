import { expect, test } from 'vitest';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';
import { createUser } from '../testing/test-io.ts';

const uuid = (end: string) => `0199e0a0-7c00-7000-8000-0000${end}`;

test('a short id stands for the one in the list, in every command; an ambiguous one is refused', async () => {
  const ids = [`sr_${uuid('0a1b2c3d')}`, `sr_${uuid('deadbeef')}`, `sr_0199e0a0-7c00-7000-9000-0000deadbeef`];
  const runs = ids.map((runId) => ({ runId }));
  await using server = await startServer(rpcAnswers({ 'subagent.list': { runs }, 'session.run_status': { status: 'running' } }));
  await using user = await createUser();
  const run = (id: string) =>
    user.run({ args: ['call', 'session.run_status', '--run-id', id], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } });
  const sent = () => JSON.parse(server.requests.at(-1)?.body ?? '');
  expect((await run('sr_0a1b2c3d')).code).toBe(0);
  expect(sent()).toMatchObject({ method: 'session.run_status', params: { runId: ids[0] } });
  expect(await run('sr_deadbeef')).toMatchObject({ code: 2, err: expect.stringContaining(`sr_deadbeef is ambiguous: ${ids[1]}, ${ids[2]}`) });
  // One that is in no list, and a full one, are sent as they are.
  await run('sr_00000000');
  expect(sent()).toMatchObject({ params: { runId: 'sr_00000000' } });
  const before = server.requests.length;
  await run(ids[1] ?? '');
  expect(server.requests).toHaveLength(before + 1);
});
