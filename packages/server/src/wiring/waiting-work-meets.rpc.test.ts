import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyHome, createStepClock, sql, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

/** Work that is accepted while the provider is down; the texts by which the provider recognizes it. */
const accepted = ['hook text', 'sent text', 'job text', 'node text'] as const;

class World {
  readonly clock: StepClock = createStepClock();
  isDown = false;
  /** Texts that were answered, in order. */
  readonly answered: string[] = [];
  server!: TestServer;
  conversationRef = '';
  ada!: { readonly tokenId: string };

  /** Starts, or restarts with the same home. */
  async start(homeDir?: string): Promise<void> {
    const server = await startTestServer({
      clock: this.clock,
      ...(homeDir !== undefined && { homeDir }),
      provider: { answer: ({ body }) => this.#answer(JSON.stringify(body)) },
      config: {
        agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1 } } },
        webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'one', agentId: 'spare' }] },
      },
    });
    open.push(server);
    this.server = server;
  }

  /** Waits until everything of `accepted` waits for its provider. */
  async accept(): Promise<void> {
    await this.start();
    await this.server.client.call('agents.create', { agentId: 'spare', config: { model: 'mock/mock-fast' } });
    const ada = await this.server.as(['rpc']);
    this.ada = ada;
    ({ conversationRef: this.conversationRef } = await ada.call('agent.execute', { agentId: 'spare', message: 'Hello' }));
    this.isDown = true;
    await this.server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'hook text' }, run: true });
    await ada.call('session.send', { conversationRef: this.conversationRef, text: 'sent text' });
    await ada.call('cron.add', {
      name: 'once',
      agentId: 'spare',
      schedule: { kind: 'in', seconds: 1 },
      payload: { kind: 'agent_turn', message: 'job text' },
    });
    await ada.call('graph.execute', { nodes: [{ node_id: 'one', task: 'node text', agent: 'spare' }] });
    this.clock.advance(1_500);
    await expect.poll(() => this.waiting()).toBe(accepted.length);
  }

  #answer(body: string) {
    if (this.isDown) return { status: 500 };
    const text = accepted.findLast((one) => body.includes(one));
    if (text !== undefined) this.answered.push(text);
    return { text: 'Done.' };
  }

  async #count(where: string): Promise<number> {
    return Number((await sql(this.server.homeDir, `select count(*) as n from work_item where ${where}`))[0]?.['n']);
  }

  waiting = () => this.#count(`ended_at_ms is null and waiting_json like '%"kind":"provider"%' and state = 'accepted'`);
  left = () => this.#count('ended_at_ms is null');

  /** Returns the runs that are listed as waiting for their provider, in the order of their origins. */
  async listed(client = this.server.client) {
    const { runs } = await client.call('run.list', {});
    return runs.filter(({ waiting }) => waiting?.kind === 'provider').toSorted((a, b) => a.origin.localeCompare(b.origin));
  }

  async origins(client?: TestServer['client']): Promise<string[]> {
    return (await this.listed(client)).map(({ origin }) => origin);
  }

  async rootOfHook(): Promise<string> {
    return (await this.listed()).find(({ origin }) => origin === 'webhook')?.rootRunId ?? 'none';
  }

  /** Replaces the process by another one, as after a kill: the files are as they were, without anything that a stop would have written. */
  async kill(): Promise<void> {
    const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-killed-'));
    open.unshift({ [Symbol.asyncDispose]: () => rm(homeDir, { recursive: true, force: true }) });
    await copyHome(this.server.homeDir, homeDir);
    await open.pop()?.[Symbol.asyncDispose]();
    await this.start(homeDir);
    // A start tries some of it at once.
    await expect.poll(() => this.waiting()).toBe(accepted.length);
  }

  /** Sources of the alerts in all inboxes. */
  async alerts(): Promise<string[]> {
    const { messages } = await this.server.client.call('inbox.list', {});
    return messages.flatMap(({ level, source }) => (level === 'alert' ? [source] : [])).toSorted();
  }

  async recover(): Promise<void> {
    this.isDown = false;
    await this.server.client.call('providers.retry', { provider: 'mock' });
  }

  /** Lets time pass until nothing is left to be done, and some more. */
  async settle(left = 0): Promise<void> {
    await expect.poll(() => (this.clock.advance(2_000), this.left()), { interval: 20 }).toBe(left);
    this.clock.advance(400_000);
    await expect.poll(() => this.left()).toBe(left);
  }
}

async function waitingWorld(): Promise<World> {
  const world = new World();
  await world.accept();
  return world;
}

test('tokens.revoke: its waiting work ends with it, and the work of others runs once', async () => {
  const world = await waitingWorld();
  await world.server.client.call('tokens.revoke', { id: world.ada.tokenId });
  await expect.poll(() => world.origins()).toEqual(['webhook']);
  await world.recover();
  await world.settle();
  expect(world.answered).toEqual(['hook text']);
});

test('agents.suspend: nothing runs while it is suspended, and everything runs once when it is resumed', async () => {
  const world = await waitingWorld();
  await world.server.client.call('agents.suspend', { agentId: 'spare' });
  await world.recover();
  for (let n = 0; n < 10; n += 1) {
    world.clock.advance(60_000);
    await world.server.client.call('agents.list', {});
  }
  expect(world.answered).toEqual([]);
  await world.server.client.call('agents.resume', { agentId: 'spare' });
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.toSorted());
});

test('agents.delete: work waiting for it ends, and its requester is notified once', async () => {
  const world = await waitingWorld();
  await world.server.client.call('agents.delete', { agentId: 'spare' });
  await expect.poll(() => world.origins()).toEqual([]);
  await world.recover();
  await world.settle();
  expect(world.answered).toEqual([]);
  expect(await world.alerts()).toEqual(['graph', 'turn', 'webhook']);
});

test('session.reset: accepted work runs once, in the restarted conversation', async () => {
  const world = await waitingWorld();
  await world.server.client.call('session.reset', { conversationRef: world.conversationRef });
  await world.recover();
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.toSorted());
});

test('session.delete: work waiting in the conversation ends, and work waiting elsewhere runs once', async () => {
  const world = await waitingWorld();
  await world.server.client.call('session.delete', { conversationRef: world.conversationRef });
  await world.recover();
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.filter((text) => text !== 'sent text').toSorted());
  // The caller that deleted it knows.
  expect(await world.alerts()).toEqual([]);
});

test('a process that is killed meanwhile: the next one continues to wait, and runs each once', async () => {
  const world = await waitingWorld();
  await world.kill();
  world.isDown = false;
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.toSorted());
});

// The job, the graph, the message and the webhook.
const origins = ['cron', 'rpc', 'rpc', 'webhook'];

test.each([false, true])('run.list shows waiting work, each page once, and run.kill ends it for good (other process: %s)', async (isRestarted) => {
  const world = await waitingWorld();
  if (isRestarted) await world.kill();
  const { client } = world.server;
  await expect.poll(() => world.origins()).toEqual(origins);
  const listed = await world.listed();
  const pages = await Promise.all([0, 1, 2, 3, 4].map((offset) => client.call('run.list', { offset, limit: 1 })));
  const total = pages[0]?.total ?? 0;
  const ids = pages.flatMap(({ runs }) => runs.map(({ rootRunId }) => rootRunId));
  expect([new Set(ids).size, ids.length, total]).toEqual([ids.length, Math.min(5, total), pages[4]?.total]);
  for (const { rootRunId } of listed) expect((await client.call('run.kill', { rootRunId })).killed).toBeGreaterThan(1);
  await world.settle();
  await world.recover();
  await world.settle();
  expect(world.answered).toEqual([]);
  expect(await world.origins()).toEqual([]);
  const { deliveries } = await client.call('webhooks.deliveries', { mapping: 'hook' });
  expect(deliveries).toMatchObject([{ state: 'failed' }]);
});

test('run.kill of one waiting run keeps the others', async () => {
  const world = await waitingWorld();
  const rootRunId = await world.rootOfHook();
  await world.server.client.call('run.kill', { rootRunId });
  await world.recover();
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.filter((text) => text !== 'hook text').toSorted());
});

test('a waiting run of others is neither listed nor killed', async () => {
  const world = await waitingWorld();
  const bea = await world.server.as(['rpc']);
  expect(await world.origins(bea)).toEqual([]);
  const other = await world.server.as(['admin'], { agents: ['default'] });
  expect(await world.origins(other)).toEqual([]);
  const rootRunId = await world.rootOfHook();
  await expect(other.call('run.kill', { rootRunId })).rejects.toMatchObject({ code: 'not_found' });
  expect(await world.origins()).toEqual(origins);
});

test('lease.revoke of a waiting run: it makes no model call any more', async () => {
  const world = await waitingWorld();
  const rootRunId = await world.rootOfHook();
  await world.server.client.call('lease.revoke', { rootRunId });
  await world.recover();
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.filter((text) => text !== 'hook text').toSorted());
});

test.each(['session.delete', 'session.reset'] as const)('%s reaches a conversation whose first turn waits', async (method) => {
  const world = await waitingWorld();
  const { client } = world.server;
  const { runs } = await client.call('run.list', {});
  const conversationRef = runs.find(({ origin }) => origin === 'webhook')?.conversationRef ?? 'none';
  const { sessions } = await client.call('session.list', { allAgents: true });
  expect(sessions.filter((one) => one.conversationRef === conversationRef)).toMatchObject([{ title: expect.stringContaining('webhook') }]);
  await client.call(method, { conversationRef });
  await world.recover();
  await world.settle();
  expect(world.answered.includes('hook text')).toBe(method === 'session.reset');
  expect(world.answered).toHaveLength(method === 'session.reset' ? 4 : 3);
});

test.each([
  ['back', -1],
  ['forward', 1],
] as const)('a clock that is set %s by ten minutes: nothing ends, and everything runs once', async (_, sign) => {
  const world = await waitingWorld();
  world.clock.step(sign * 10 * 60_000);
  // One check at a time, each with its own end.
  for (let n = 0; n < 20; n += 1) {
    world.clock.advance(10_000);
    await expect.poll(() => world.waiting()).toBe(accepted.length);
  }
  await world.recover();
  await world.settle();
  expect(world.answered.toSorted()).toEqual(accepted.toSorted());
});
