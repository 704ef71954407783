import { randomUUID } from 'node:crypto';
import { createStepClock, sql, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { principalOf } from '../features/unattended/webhooks/intake/identity.ts';

const topic = 'the winter festival of lanterns';
const daily = { kind: 'every', everyMs: 86_400_000 } as const;

test('a heartbeat, a job and a webhook recall shared memories and their principal’s, and no others', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({
    clock,
    config: {
      embedding: { provider: 'hashing' },
      agents: {
        default: {
          model: 'mock/mock-fast',
          heartbeat: { enabled: true, intervalMs: 86_400_000, lightContext: false, prompt: `Look at ${topic}, ${topic}` },
          memory: { recall: { minScore: 0.01 } },
        },
      },
      webhooks: { mappings: [{ id: 'hook', agentId: 'default', messageTemplate: `Look at ${topic}: {{text}}` }] },
    },
  });
  const { client, provider } = server;
  const ada = await server.as(['rpc']);
  const bob = await server.as(['rpc']);
  /** Stored as the review of a conversation with this principal would. */
  async function storeFor(principalId: string, who: string): Promise<void> {
    await sql(
      server.homeDir,
      `INSERT INTO memory (id, tenant_id, agent_id, principal_id, memory_type, trust_level, taint_level, source_who, tags, created_at_ms, content)
       VALUES (?, 'default', 'default', ?, 'semantic', 'learned', 'clean', 'default', '[]', ?, ?)`,
      randomUUID(),
      principalId,
      clock.now(),
      `${who} plans ${topic}.`,
    );
  }
  await client.call('memory.store', { content: `Everybody plans ${topic}.` });
  const owners = { Ada: `token:${ada.tokenId}`, Bob: `token:${bob.tokenId}`, Beat: 'system:heartbeat', Hook: principalOf('hook') };
  for (const [who, principalId] of Object.entries(owners)) await storeFor(principalId, who);

  /** Names in the last model request about the topic. */
  const recalled = () => {
    const sent = provider.requests.map(({ body }) => JSON.stringify(body)).filter((body) => body.includes(topic));
    return ['Everybody', ...Object.keys(owners)].filter((who) => sent.at(-1)?.includes(`${who} plans ${topic}`) === true);
  };
  // The clock is frozen meanwhile: the time for a search is short.
  const served = async (count: number) => expect.poll(() => provider.served()).toBe(count);
  provider.setAnswer(() => ({ text: 'HEARTBEAT_OK' }));

  for (const [index, owner] of [ada, bob].entries()) {
    await owner.call('cron.add', { name: `job-${index}`, schedule: daily, payload: { kind: 'agent_turn', message: `Look at ${topic}` } });
    await owner.call('cron.run', { jobName: `job-${index}` });
    await served(index + 1);
    expect(recalled()).toEqual(['Everybody', index === 0 ? 'Ada' : 'Bob']);
  }

  await client.call('webhooks.test', { mapping: 'hook', payload: { text: 'Hello' }, run: true });
  await served(3);
  expect(recalled()).toEqual(['Everybody', 'Hook']);

  await client.call('workspace.writeFile', { agentId: 'default', filePath: 'HEARTBEAT.md', content: '- Look at it' });
  await client.call('heartbeat.trigger', { agentId: 'default' });
  clock.advance(250);
  await served(4);
  expect(recalled()).toEqual(['Everybody', 'Beat']);
});
