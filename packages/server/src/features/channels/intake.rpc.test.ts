import { startFakeTelegram, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import type { Db } from '../../kernel/db/db.ts';

test('a batch of a hundred messages costs one read and one commit, before it is acknowledged', async () => {
  await using telegram = await startFakeTelegram();
  const used = new Map<string, number>();
  const count = ({ name }: { readonly name: string }) => used.set(name, (used.get(name) ?? 0) + 1);
  const wrap = (db: Db): Db => ({
    ...db,
    read: (operation, input) => (count(operation), db.read(operation, input)),
    write: (operation, input) => (count(operation), db.write(operation, input)),
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  });
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, dm: { policy: 'open' as const }, enabled: false };
  await using server = await startTestServer({
    db: wrap,
    config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } },
    provider: { answer: () => ({ text: 'Hello' }) },
  });
  for (let person = 1; person <= 100; person += 1) telegram.chats.say({ id: 1_000 + person, first_name: 'Ada' }, 'hello');
  await server.client.call('channels.enable', { channel_type: 'telegram' });
  await expect.poll(() => telegram.isPolled()).toBe(true);
  expect(telegram.pending()).toEqual([]);
  const { total } = await server.client.call('channels.messages', { limit: 1 });
  expect(total).toBe(100);
  expect([used.get('channels.accept'), used.get('channels.findPairings'), used.get('channels.findPairing')]).toEqual([1, 1, undefined]);
});
