import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';

test("each change of a delivery's state is announced", async () => {
  await using server = await startTestServer({
    config: {
      webhooks: { presets: ['github'], mappings: [{ id: 'rest' }, { id: 'beat', match: { path: 'beat' }, action: 'wake' }] },
    },
  });
  const heard = server.heard('webhook:delivery');
  const test = (mapping: string, headers = {}) => server.client.call('webhooks.test', { mapping, headers, run: true });
  const statesOf = (id: string | null) => heard.filter(({ deliveryId }) => deliveryId === id).map(({ state }) => state);
  const { deliveryId: turn } = await test('rest');
  await expect.poll(() => statesOf(turn)).toEqual(['accepted', 'running', 'done']);
  expect(heard[0]).toMatchObject({ mapping: 'rest', agentId: 'default', timestamp: expect.any(Number) });
  const { deliveryId: ping } = await test('github', { 'x-github-event': 'ping' });
  expect(statesOf(ping)).toEqual(['ignored']);
  const { deliveryId: beat } = await test('beat');
  expect(statesOf(beat)).toEqual(['done']);
  server.provider.queue({ status: 400, error: { message: 'no' } });
  const { deliveryId: failing } = await test('rest');
  await expect.poll(() => statesOf(failing)).toEqual(['accepted', 'running', 'failed']);
  expect((await server.client.call('webhooks.deliveries', {})).deliveries.find(({ deliveryId }) => deliveryId === failing)?.state).toBe('failed');
});

test('deliveries do not look through the queue while it is known to have capacity', async () => {
  const intakes: unknown[] = [];
  await using server = await startTestServer({
    config: { webhooks: { mappings: [{ id: 'rest' }] } },
    db(db) {
      const write = db.write.bind(db);
      return Object.assign(db, {
        write: (...[operation, input]: Parameters<typeof write>) => {
          if (operation.name === 'webhooks.accept') intakes.push(input);
          return write(operation, input);
        },
      });
    },
  });
  for (let n = 0; n < 4; n += 1) await server.client.call('webhooks.test', { mapping: 'rest', run: true });
  // The first one starts the count.
  expect(intakes).toMatchObject([{ fits: false }, { fits: true }, { fits: true }, { fits: true }]);
});

test('a token that is limited to some agents sees, replays and tests only deliveries to them', async () => {
  await using server = await startTestServer({
    config: { agents: { other: {} }, webhooks: { mappings: [{ id: 'rest' }, { id: 'theirs', match: { path: 'theirs' }, agentId: 'other' }] } },
  });
  const run = (mapping: string) => server.client.call('webhooks.test', { mapping, payload: { text: `For ${mapping}` }, run: true });
  const [foreign, own] = [await run('rest'), await run('theirs')];
  const limited = await server.as(['admin'], { agents: ['other'] });
  expect((await limited.call('webhooks.list', {})).webhooks.map(({ mapping }) => mapping)).toEqual(['theirs']);
  const { deliveries, hasMore } = await limited.call('webhooks.deliveries', { limit: 1 });
  expect([deliveries.map(({ deliveryId }) => deliveryId), hasMore]).toEqual([[own.deliveryId], false]);
  await expect(limited.call('webhooks.replay', { deliveryId: foreign.deliveryId ?? '' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(limited.call('webhooks.test', { mapping: 'rest', run: true })).rejects.toMatchObject({ code: 'not_found' });
  expect(await limited.call('webhooks.replay', { deliveryId: own.deliveryId ?? '' })).toMatchObject({ replayOf: own.deliveryId });
});
