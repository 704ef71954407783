import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createLogger } from '../kernel/logger.ts';

const create = () => createLogger({ level: 'info', redact: (line) => line, write() {} });

test('the newest lines of the log are for admins without a limit to agents', async () => {
  const logger = create();
  await using server = await startTestServer({ logger });
  logger.log.module('models').warn({ provider: 'local' }, 'Refused');
  const { lines, modules } = await server.client.call('daemon.logs', { level: 'warn' });
  expect(lines.at(-1)).toMatchObject({ level: 'warn', module: 'models', message: 'Refused', fields: { provider: 'local' } });
  expect(modules).toContain('models');
  const [limited, reader] = [await server.as(['admin'], { agents: ['default'] }), await server.as(['rpc'])];
  await expect(limited.call('daemon.logs')).rejects.toMatchObject({ code: 'denied' });
  await expect(reader.call('daemon.logs')).rejects.toMatchObject({ code: 'insufficient_scope' });
});

test('lines that follow reach the streams of admins that name their event, and no others', async () => {
  const logger = create();
  await using server = await startTestServer({ logger });
  const limited = await server.as(['admin'], { agents: ['default'] });
  const reader = await server.as(['rpc']);
  const stop = new AbortController();
  const heard: Record<string, string[]> = { named: [], all: [], limited: [], reader: [] };
  const opened: Promise<void>[] = [];
  const follow = (name: string, client: Pick<typeof reader, 'events'>, kinds?: readonly ['daemon:log', 'agent:hot_added']): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    opened.push(promise);
    const read = async (): Promise<void> => {
      for await (const { kind, payload } of client.events({
        signal: stop.signal,
        ...(kinds && { kinds }),
        onState: (state) => state === 'open' && resolve(),
      })) {
        if (kind === 'agent:hot_added') return;
        if (kind === 'daemon:log') heard[name]?.push(payload.message);
      }
    };
    return read();
  };
  const readers = [
    follow('named', server.client, ['daemon:log', 'agent:hot_added']),
    follow('all', server.client),
    follow('limited', limited, ['daemon:log', 'agent:hot_added']),
    follow('reader', reader, ['daemon:log', 'agent:hot_added']),
  ];
  await Promise.all(opened);
  logger.log.warn({}, 'Refused');
  // A reader that hears this has heard all before it.
  await server.client.call('agents.create', { agentId: 'late', config: {} });
  await Promise.all(readers.slice(0, 2));
  stop.abort();
  await Promise.allSettled(readers);
  expect(heard['named']).toContain('Refused');
  expect([heard['all'], heard['limited'], heard['reader']]).toEqual([[], [], []]);
});
