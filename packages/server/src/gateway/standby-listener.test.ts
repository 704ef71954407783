import { expect, test } from 'vitest';
import { systemClock } from '../kernel/clock.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { silentLog } from '../kernel/log.ts';
import { GatewayConfig } from './config.ts';
import { openStandbyListener } from './standby-listener.ts';

const open = (config: object = {}) =>
  openStandbyListener({
    config: GatewayConfig.parse({ port: 0, ...config }),
    homeDir: '/nowhere',
    clock: systemClock,
    bus: createEventBus(() => {}),
    log: silentLog,
    version: '1.2.3',
    lease: () => ({ status: 'ok', detail: 'waits for the active node' }),
  });

test('reports that it lives, and that it is not ready', async () => {
  await using listener = await open();
  for (const path of ['/health', '/api/health']) {
    const alive = await fetch(`${listener.address}${path}`);
    expect([alive.status, await alive.json()]).toMatchObject([
      200,
      { status: 'standby', role: 'standby', version: '1.2.3', checks: { lease: { status: 'ok', detail: 'waits for the active node' } } },
    ]);
    const ready = await fetch(`${listener.address}${path}?ready`);
    expect([ready.status, ready.headers.get('retry-after')]).toEqual([503, '1']);
  }
});

test.each([
  ['/v1/chat/completions', { error: { type: 'server_error', message: 'This node is a standby: the active one answers' } }],
  ['/v1/messages', { type: 'error', error: { message: 'This node is a standby: the active one answers' } }],
  ['/rpc', { jsonrpc: '2.0', error: { data: { code: 'unavailable', retryAfterMs: 1000 } }, id: null }],
  ['/api/chat', { code: 'unavailable', error: 'This node is a standby: the active one answers' }],
  ['/', { code: 'unavailable' }],
])('%s answers 503 with Retry-After in the format of its family', async (path, body) => {
  await using listener = await open();
  const answer = await fetch(`${listener.address}${path}`, { method: 'POST', body: '{}' });
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('connection')]).toEqual([503, '1', 'close']);
  expect(await answer.json()).toMatchObject(body);
});

test('refuses upgrades, and frees its address when it ends', async () => {
  const listener = await open();
  const port = Number(new URL(listener.address ?? '').port);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  await new Promise((resolve) => socket.addEventListener('error', resolve));
  await listener[Symbol.asyncDispose]();
  await using again = await open({ port });
  expect(again.address).toBe(listener.address);
});

test('does not listen when the gateway is off', async () => {
  await using listener = await open({ enabled: false });
  expect(listener.address).toBeNull();
});
