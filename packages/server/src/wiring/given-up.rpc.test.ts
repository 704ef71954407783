import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const sentence = 'The key was withdrawn on Tuesday';
let homeDir: string;
let server: TestServer;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-given-up-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

const clock = createStepClock();
/** Announcements to a conversation fail, and so does text with FAIL; everything else is answered. */
const refused = ({ body }: { readonly body: unknown }) =>
  /FAIL|Sub-agents that you asked for ended|was started for this conversation/.test(JSON.stringify(body));

async function start(maxWaitMs?: number) {
  server = await startTestServer({
    homeDir,
    clock,
    provider: { answer: (request) => (refused(request) ? { status: 500, error: { message: sentence } } : { text: 'Done.' }) },
    config: {
      agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1000 } } },
      ...(maxWaitMs !== undefined && { durable: { maxWaitMs } }),
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'one' }] },
    },
  });
}
const waiting = async () => (await sql(homeDir, `SELECT kind FROM work_item WHERE waiting_json IS NOT NULL ORDER BY kind`)).map(({ kind }) => kind);
const inbox = async () => (await server.client.call('inbox.list', {})).messages;

test('accepted work that is given up is reported once, with its cause and a next step', async () => {
  await start();
  const { client } = server;
  const { conversationRef } = await client.call('agent.execute', { message: 'Hello', sessionKey: { userId: 'ada', channelId: 'desk' } });
  const to = { announceChannelType: 'gateway', announceChannelId: conversationRef };
  const { runId } = await client.call('session.spawn', { task: 'FAIL to work' });
  const { runId: announced } = await client.call('session.spawn', { task: 'Work', ...to });
  const { graphId } = await client.call('graph.execute', { nodes: [{ node_id: 'one', task: 'Work' }], ...to });
  const { deliveryId } = await client.call('webhooks.test', { mapping: 'hook', payload: { text: 'FAIL' }, run: true });
  await client.call('session.send', { conversationRef, text: 'FAIL' });
  await client.call('cron.add', { name: 'job', schedule: { kind: 'in', seconds: 5 }, payload: { kind: 'agent_turn', message: 'FAIL' } });
  clock.advance(6_000);
  await expect.poll(waiting).toEqual(['announce', 'cron', 'graph_told', 'session_send', 'subagent', 'webhook']);
  await server[Symbol.asyncDispose]();
  // As after a daemon that ended repeatedly over this work.
  await sql(homeDir, `UPDATE work_item SET resumes = 20, not_before_ms = 0 WHERE waiting_json IS NOT NULL`);
  await start();
  const about = ['Job "job"', graphId, 'A message to ada:desk', runId, announced, deliveryId ?? 'no delivery'];
  await expect.poll(async () => (await inbox()).length).toBe(about.length);
  const messages = await inbox();
  for (const name of about) expect(messages.filter(({ text }) => text.includes(name)).length, name).toBe(1);
  for (const { level, text } of messages) {
    expect(level).toBe('alert');
    expect(text).toContain('died 20 times');
    expect(text).toContain('Next step: ');
  }
});

test('an owner is notified once, with the cause, that a conversation did not hear of a sub-agent or a graph', async () => {
  await start(60_000);
  const { client } = server;
  const { conversationRef } = await client.call('agent.execute', { message: 'Hello', sessionKey: { userId: 'ada', channelId: 'desk' } });
  const to = { announceChannelType: 'gateway', announceChannelId: conversationRef };
  const { runId } = await client.call('session.spawn', { task: 'Work', ...to });
  const { graphId } = await client.call('graph.execute', { nodes: [{ node_id: 'one', task: 'Work' }], ...to });
  const notices = async () => (clock.advance(30_000), (await inbox()).length);
  await expect.poll(notices).toBe(2);
  for (let n = 0; n < 6; n += 1) expect(await notices()).toBe(2);
  for (const { level, text } of await inbox()) {
    expect(level).toBe('alert');
    expect(text).toContain(sentence);
    expect(text).toContain('Next step: send a message there');
  }
  expect((await inbox()).map(({ text }) => [runId, graphId].findIndex((id) => text.includes(id))).toSorted()).toEqual([0, 1]);
});
