import { startTestServer } from '@gatehouse/testkit';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

const sentence = 'The key of this account was withdrawn on Tuesday by its administrator, see the console of the provider';

test('runs, graphs, jobs and webhooks show why they failed, shortened to the terminal width and complete in JSON', async () => {
  await using server = await startTestServer({
    provider: { answer: ({ body }) => ({ status: JSON.stringify(body).includes('DOWN') ? 401 : 400, error: { message: sentence } }) },
    config: { webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}' }] } },
  });
  const { client } = server;
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  const run = async (...args: string[]) => (await user.run({ args, env, io: { now: () => Date.now() } })).out;
  /** Runs a command on a terminal with 60 columns. */
  async function inTerminal(...args: string[]): Promise<string> {
    const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 60 });
    await user.run({ args, env, io: { now: () => Date.now(), stdout } });
    return String(stdout.read());
  }
  const { runId } = await client.call('session.spawn', { task: 'Try' });
  await client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 });
  const { graphId } = await client.call('graph.execute', { nodes: [{ node_id: 'one', task: 'Work' }] });
  await client.call('cron.add', { name: 'once', schedule: { kind: 'in', seconds: 3600 }, payload: { kind: 'agent_turn', message: 'Once' } });
  await client.call('cron.run', { jobName: 'once' });
  await client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' }, run: true });
  for (const args of [['runs'], ['graph', 'status', graphId], ['graph', 'runs'], ['cron', 'runs', 'once'], ['webhooks', 'deliveries']]) {
    await expect.poll(() => run(...args)).toContain(sentence);
    const note = (await inTerminal(...args)).split('\n').find((line) => line.startsWith('    cause: '));
    expect(note).toMatch(/^ {4}cause: .*…$/);
    expect(note).toHaveLength(60);
    expect(await run(...args, '--json')).toContain(sentence);
  }
  expect(await run('runs', 'show', runId)).toMatch(new RegExp(`^cause +.*${sentence}`, 'm'));
  const { runId: waits } = await client.call('session.spawn', { task: 'DOWN' });
  await expect
    .poll(() => run('runs', 'show', waits))
    .toMatch(new RegExp(`^waiting +waiting for its model provider until .* UTC: .*${sentence}`, 'm'));
});
