import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** A message that only the provider knows. */
const sentence = 'The parameter fruit takes no bananas';
const said = expect.stringContaining(sentence);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    provider: { answer: ({ body }) => ({ status: JSON.stringify(body).includes('DOWN') ? 500 : 400, error: { message: sentence } }) },
    config: {
      agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1000 } } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}' }] },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

test('the owner sees why a sub-agent failed wherever it is shown; a token without admin only what kind of failure it was', async () => {
  const ada = await server.as(['rpc']);
  for (const { client, cause } of [
    { client: server.client, cause: said },
    { client: ada, cause: undefined },
  ]) {
    const { runId, rootRunId } = await client.call('session.spawn', { task: 'Peel bananas' });
    const [waited] = (await client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 })).results;
    expect(waited?.completion).toMatchObject({ endReason: 'failed', errorKind: 'bad_request' });
    expect(waited?.completion?.cause).toEqual(cause);
    const status = await client.call('session.run_status', { runId });
    expect(status.status === 'failed' && status.completion.cause).toEqual(cause);
    const listed = (await client.call('subagent.list', {})).runs.find((run) => run.runId === runId);
    expect(listed?.completion?.errorKind).toBe('bad_request');
    expect(listed?.completion !== undefined && 'cause' in listed.completion ? listed.completion.cause : undefined).toEqual(cause);
    const root = (await client.call('run.list', {})).runs.find((run) => run.rootRunId === rootRunId);
    expect(root).toMatchObject({ state: 'failed' });
    expect(root?.cause).toEqual(cause);
    if (cause === undefined) expect(JSON.stringify([waited, status, listed, root])).not.toContain('no bananas');
  }
});

test('the owner sees why a node of a graph failed; a token without admin only what kind of failure it was', async () => {
  const ada = await server.as(['rpc']);
  for (const { client, cause } of [
    { client: server.client, cause: said },
    { client: ada, cause: undefined },
  ]) {
    const { graphId } = await client.call('graph.execute', { nodes: [{ node_id: 'one', task: 'Work' }] });
    const node = async () => {
      const view = await client.call('graph.status', { graphId });
      return 'nodes' in view ? view.nodes['one'] : undefined;
    };
    await expect.poll(async () => (await node())?.status).toBe('failed');
    expect(await node()).toMatchObject({ error: 'bad_request' });
    expect((await node())?.cause).toEqual(cause);
    await expect.poll(async () => (await client.call('graph.runs', {})).runs.find((run) => run.graphId === graphId)?.status).toBe('failed');
    expect((await client.call('graph.runs', {})).runs.find((run) => run.graphId === graphId)?.cause).toEqual(cause);
    const detail = await client.call('graph.runDetail', { graphId });
    expect(detail.nodes).toMatchObject([{ nodeId: 'one', error: 'bad_request' }]);
    expect(detail.nodes[0]?.cause).toEqual(cause);
  }
});

test('the owner sees why a job and a webhook failed, whether or not they waited for the provider', async () => {
  await server.client.call('cron.add', { name: 'once', schedule: { kind: 'in', seconds: 3600 }, payload: { kind: 'agent_turn', message: 'Once' } });
  await server.client.call('cron.run', { jobName: 'once' });
  const run = async () => (await server.client.call('cron.runs', { jobName: 'once' })).runs[0];
  await expect.poll(async () => (await run())?.status).toBe('failed');
  expect((await run())?.cause).toEqual(said);
  const { deliveryId } = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' }, run: true });
  const delivery = async () => (await server.client.call('webhooks.deliveries', {})).deliveries.find((one) => one.deliveryId === deliveryId);
  await expect.poll(async () => (await delivery())?.state).toBe('failed');
  expect((await delivery())?.cause).toEqual(said);
});

test('the owner sees why a turn failed, in its result and in the chat; a token without admin only that its provider failed', async () => {
  const ada = await server.as(['rpc', 'api']);
  for (const { client, token, cause } of [
    { client: server.client, token: server.token, cause: said },
    { client: ada, token: ada.token, cause: undefined },
  ]) {
    const { failure } = await client.call('agent.execute', { message: 'DOWN' });
    expect(failure).toMatchObject({ kind: 'server', message: expect.not.stringContaining(sentence) });
    expect(failure?.cause).toEqual(cause);
    for (const path of ['/api/chat', '/api/chat/stream']) {
      const response = await fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ message: 'DOWN' }),
      });
      const text = await response.text();
      expect(text).toContain('The model provider failed');
      expect(text.includes(sentence), `${path} ${cause === undefined ? 'without' : 'with'} admin`).toBe(cause !== undefined);
    }
  }
});
