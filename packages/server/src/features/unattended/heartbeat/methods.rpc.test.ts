import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const config = {
  agents: {
    default: { model: 'mock/mock-fast', heartbeat: { enabled: true } },
    filed: { model: 'mock/mock-fast', heartbeat: { enabled: true, prompt: 'Of the file.', intervalMs: 3_600_000 } },
  },
  scheduler: { heartbeat: { ackMaxChars: 77 } },
};
const clock = createStepClock();
let server: TestServer;
let homeDir: string;
beforeAll(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-beat-'));
  server = await startTestServer({ clock, homeDir, config });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

describe.each(['http', 'websocket'] as const)('over %s', (transport) => {
  test('every method answers', async () => {
    using socket = server.socket();
    const { call } = transport === 'http' ? server.client : socket;
    const agentId = 'default';
    expect((await call('heartbeat.states', {})).agents.map((agent) => agent.agentId)).toEqual(expect.arrayContaining(['default', 'filed']));
    expect(await call('heartbeat.get', { agentId })).toMatchObject({ perAgent: { enabled: true }, effective: { enabled: true, ackMaxChars: 77 } });
    const updated = await call('heartbeat.update', { agentId, intervalMs: 600_000 });
    expect(updated).toMatchObject({ agentId, updated: true, config: { enabled: true, intervalMs: 600_000 } });
    expect((updated.nextDueAtMs ?? 0) - clock.now()).toBeLessThanOrEqual(600_000);
    clock.advance(1_000);
    const first = await call('heartbeat.trigger', { agentId });
    expect(first).toMatchObject({
      triggered: true,
      admission: { accepted: true, disposition: 'new_occurrence', retainedReason: 'manual', lane: 'normal' },
    });
    expect(await call('scheduler.wake', { target: 'agent' })).toEqual({
      status: 'coalesced',
      accepted: false,
      coalesced: true,
      correlationId: first.admission.correlationId,
      lane: 'normal',
      retainedReason: 'manual',
    });
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    expect(await call('scheduler.wake', { target: 'monitoring' })).toMatchObject({ status: 'accepted' });
    clock.advance(60_000);
    await expect.poll(() => ended.map(({ target, status }) => `${target} ${status}`).toSorted()).toEqual(['agent skipped', 'monitoring settled']);
    expect(server.provider.served()).toBe(0);
  });
});

describe('authority', () => {
  test('heartbeat.* is for admins; scheduler.wake is for every caller and the agents it may use', async () => {
    const rpc = await server.as(['rpc']);
    const agentId = 'default';
    for (const [method, params] of [
      ['heartbeat.states', {}],
      ['heartbeat.get', { agentId }],
      ['heartbeat.update', { agentId }],
      ['heartbeat.trigger', { agentId }],
    ] as const)
      await expect(rpc.call(method, params)).rejects.toMatchObject({ code: 'insufficient_scope' });
    expect(await rpc.call('scheduler.wake', { target: 'agent', agentId })).toMatchObject({ retainedReason: 'wake' });
  });

  test('inaccessible agents answer like unknown ones', async () => {
    const limited = await server.as(['admin'], { agents: ['filed'] });
    expect((await limited.call('heartbeat.states')).agents.map(({ agentId }) => agentId)).toEqual(['filed']);
    for (const method of ['heartbeat.get', 'heartbeat.update', 'heartbeat.trigger'] as const) {
      const refusals = await Promise.all(
        ['default', 'nobody'].map((agentId) =>
          limited
            .call(method, { agentId })
            .catch((error: { code: string; message: string }) => `${error.code} ${error.message.replace(agentId, '?')}`),
        ),
      );
      expect(refusals).toEqual(['not_found Agent not found: ?', 'not_found Agent not found: ?']);
    }
    await expect(limited.call('scheduler.wake', { target: 'agent', agentId: 'default' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(limited.call('scheduler.wake', { target: 'monitoring' })).rejects.toMatchObject({ code: 'denied' });
  });

  test('each change is audited under its method name', async () => {
    const audited = server.heard('audit:event');
    await server.client.call('heartbeat.update', { agentId: 'filed', showOk: false });
    expect(audited).toMatchObject([{ actionType: 'heartbeat.update', classification: 'mutate', target: 'filed', outcome: 'success' }]);
  });
});

describe('invalid input is rejected by field and changes nothing', () => {
  test.each([
    [{ intervalMs: 59_999 }, 'intervalMs'],
    [{ intervalMs: 1.5e12 }, 'intervalMs'],
    [{ enabled: 'yes' }, 'enabled'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: 'x'.repeat(4001) }, 'prompt'],
    [{ model: 'nobody/nothing' }, 'model'],
    [{ lightContext: 1 }, 'lightContext'],
    [{ ackMaxChars: -1 }, 'ackMaxChars'],
    [{ activeHours: { start: '24:00', end: '08:00' } }, 'activeHours.start'],
    [{ activeHours: { start: '8:00', end: '09:00' } }, 'activeHours.start'],
    [{ activeHours: { start: '08:00', end: '08:00' } }, 'activeHours.end'],
    [{ activeHours: { start: '08:00' } }, 'activeHours.end'],
    [{ activeHours: { start: '08:00', end: '09:00', timeZone: 'Mars/Base' } }, 'activeHours.timeZone'],
    [{ toolPolicy: { profile: 'all' } }, 'toolPolicy.profile'],
    [{ timeoutMs: 10 }, 'timeoutMs'],
    [{ showOk: 'no' }, 'showOk'],
    [{ showAlerts: 0 }, 'showAlerts'],
    [{ alertThreshold: 0 }, 'alertThreshold'],
    [{ alertCooldownMs: -1 }, 'alertCooldownMs'],
  ])('%j', async (fields, path) => {
    const before = await server.client.call('heartbeat.get', { agentId: 'filed' });
    const params = { agentId: 'filed', ...fields } as { agentId: string };
    await expect(server.client.call('heartbeat.update', params)).rejects.toMatchObject({
      code: 'invalid_params',
      issues: expect.arrayContaining([expect.objectContaining({ path })]),
    });
    expect(await server.client.call('heartbeat.get', { agentId: 'filed' })).toEqual(before);
  });

  test('of scheduler.wake', async () => {
    const { client } = server;
    await expect(client.call('scheduler.wake', { target: 'agent', agentId: 'Bad Id' })).rejects.toMatchObject({ code: 'invalid_params' });
    await expect(client.call('scheduler.wake', { target: 'monitoring', agentId: 'default' })).rejects.toMatchObject({ code: 'invalid_params' });
  });
});

test('changes of a configured and of a stored agent survive a restart; null reverts them', async () => {
  await server.client.call('agents.create', { agentId: 'stored', config: { model: 'mock/mock-fast' } });
  const hours = { start: '08:00', end: '22:00', timeZone: 'Europe/Berlin' };
  for (const agentId of ['filed', 'stored'])
    await server.client.call('heartbeat.update', { agentId, enabled: true, prompt: 'Changed.', activeHours: hours });
  await server[Symbol.asyncDispose]();
  // The agents of the file.
  server = await startTestServer({ clock, homeDir, config: { ...config, agents: {} } });
  for (const agentId of ['filed', 'stored'])
    expect((await server.client.call('heartbeat.get', { agentId })).perAgent).toMatchObject({
      enabled: true,
      prompt: 'Changed.',
      activeHours: hours,
    });
  const { config: now } = await server.client.call('heartbeat.update', {
    agentId: 'filed',
    prompt: null,
    activeHours: { start: '07:00', end: '23:00' },
  });
  expect(now).toMatchObject({ enabled: true, intervalMs: 3_600_000, activeHours: { start: '07:00', end: '23:00' } });
  expect(now.prompt).toBeUndefined();
  expect(now.activeHours?.timeZone).toBeUndefined();
  const all = await server.client.call('heartbeat.update', { agentId: 'stored', enabled: null, prompt: null, activeHours: null });
  expect(all).toMatchObject({ config: { enabled: false }, nextDueAtMs: null });
  expect((await server.client.call('agents.get', { agentId: 'stored' })).config.heartbeat).toEqual({ enabled: false });
});
