import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { queueSystemEvent } from '../testing/queue-system-event.ts';

const minute = 60_000;
const interval = 30 * minute;
const on = { default: { model: 'mock/mock-fast', heartbeat: { enabled: true } } };

let clock: StepClock;
let server: TestServer;
let homeDir: string;
const start = async (config: TestServerOptions['config'] = { agents: on }) => (server = await startTestServer({ clock, homeDir, config }));
beforeEach(async () => {
  clock = createStepClock();
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-beat-'));
  await checklist('- Look\n');
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

async function checklist(text: string, agentId = 'default') {
  const dir = join(homeDir, 'workspaces', agentId);
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'HEARTBEAT.md'), text);
}
const queue = (text: string, more: Partial<Parameters<typeof queueSystemEvent>[1]> = {}) =>
  queueSystemEvent(homeDir, { agentId: 'default', text, atMs: clock.now(), ...more });

async function stateOf(agentId = 'default') {
  const { agents } = await server.client.call('heartbeat.states');
  const found = agents.find((agent) => agent.agentId === agentId);
  if (found === undefined) throw new Error(`no state of ${agentId}`);
  return found;
}
async function nextBeat() {
  const ended = server.heard('scheduler:heartbeat_wake_terminal');
  clock.advance(((await stateOf()).nextDueAtMs ?? Number.NaN) - clock.now());
  await expect.poll(() => ended.length).toBe(1);
  return ended[0];
}
async function trigger() {
  const ended = server.heard('scheduler:heartbeat_wake_terminal');
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  clock.advance(250);
  await expect.poll(() => ended.length).toBe(1);
  return ended[0];
}
const inbox = async () => (await server.client.call('inbox.list', {})).messages.map(({ level, text }) => `${level}: ${text}`);
const questions = () => server.provider.requests.map(({ body }) => JSON.stringify(body));

describe('failures', () => {
  test('back off in steps, raise alerts from the second on with a cooldown, keep queued events, and clear after a successful beat', async () => {
    await start({
      agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 100 }, heartbeat: { enabled: true, intervalMs: minute } } },
    });
    const alerts = server.heard('scheduler:heartbeat_alert');
    const deferred = server.heard('scheduler:heartbeat_wake_deferred');
    server.provider.setAnswer(() => ({ status: 500 }));
    const waits: number[] = [];
    for (let n = 1; n <= 6; n += 1) {
      const before = (await stateOf()).backoffUntilMs ?? 0;
      clock.advance(Math.max(0, before - clock.now()));
      await expect.poll(async () => (clock.advance(2_000), (await stateOf()).consecutiveErrors), { interval: 20 }).toBe(n);
      const { backoffUntilMs, lastErrorKind, lastAlertAtMs } = await stateOf();
      expect(lastErrorKind).toBe('transient');
      expect(lastAlertAtMs === null).toBe(n === 1);
      waits.push(Math.round(((backoffUntilMs ?? 0) - clock.now()) / 30_000) / 2);
    }
    expect(waits).toEqual([0.5, 1, 5, 15, 60, 60]);
    expect(alerts.length).toBe(4);
    expect(deferred).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ agentId: 'default', retainedReason: 'interval', reason: 'backoff', nextEligibleAtMs: expect.any(Number) }),
      ]),
    );
    expect(alerts[0]).toMatchObject({ agentId: 'default', consecutiveErrors: 2, classification: 'transient', backoffMs: minute });
    expect((await inbox()).filter((text) => text.startsWith('alert: The heartbeat of agent default failed'))).toHaveLength(4);
    await queue('The mail came.');
    expect(await stateOf()).toMatchObject({ queuedEvents: 1, stoppedBy: null });

    server.provider.setAnswer(() => ({ text: 'HEARTBEAT_OK' }));
    clock.advance(minute);
    expect(await trigger()).toMatchObject({ status: 'settled', eventCount: 1 });
    expect(questions().at(-1)).toContain('The mail came.');
    expect(await stateOf()).toMatchObject({ consecutiveErrors: 0, backoffUntilMs: null, lastErrorKind: null, queuedEvents: 0 });
  });

  test.each([
    ['auth', { status: 401, error: { message: 'no such key' } }],
    ['billing', { status: 402, error: { message: 'insufficient quota', code: 'insufficient_quota' } }],
  ])('for %s stops the beats with one alert, also over a restart, until the configuration changes or one is triggered', async (kind, refusal) => {
    await start();
    const alerts = server.heard('scheduler:heartbeat_alert');
    server.provider.setAnswer(() => refusal);
    expect(await nextBeat()).toMatchObject({ status: 'failed_before_side_effect', errorKind: kind });
    expect(alerts).toMatchObject([{ classification: 'permanent', reason: kind }]);
    expect(await inbox()).toEqual([expect.stringMatching(/^alert: .* is stopped until it is triggered manually/)]);
    expect(await stateOf()).toMatchObject({ stoppedBy: kind, nextDueAtMs: null });
    const called = server.provider.served();
    clock.advance(24 * 60 * minute);
    await expect(server.client.call('scheduler.wake', { target: 'agent' })).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(server.provider.served()).toBe(called);

    await server.client.call('agents.update', { agentId: 'default', config: { temperature: 0.5 } });
    expect(await stateOf()).toMatchObject({ stoppedBy: null, consecutiveErrors: 0, nextDueAtMs: expect.any(Number) });
    clock.advance(60 * minute);
    await expect.poll(async () => (await stateOf()).stoppedBy).toBe(kind);

    clock.advance(60 * minute);
    server.provider.setAnswer(() => ({ text: 'HEARTBEAT_OK' }));
    expect(await trigger()).toMatchObject({ status: 'settled' });
    expect(await stateOf()).toMatchObject({ stoppedBy: null, nextDueAtMs: expect.any(Number) });
  });

  test('a rejected key is not retried by a restart alone', async () => {
    const other = await startTestServer();
    const at = (apiKey: string) => ({
      agents: on,
      providers: { mock: { type: 'openai-compatible' as const, baseUrl: other.provider.url, apiKey, models: [{ id: 'mock-fast' }] } },
    });
    other.provider.setAnswer(() => ({ status: 401 }));
    await start(at('old'));
    await nextBeat();
    expect(await stateOf()).toMatchObject({ stoppedBy: 'auth' });
    await server[Symbol.asyncDispose]();
    await start(at('old'));
    expect(await stateOf()).toMatchObject({ stoppedBy: 'auth', nextDueAtMs: null, lastErrorKind: 'permanent' });
    await server[Symbol.asyncDispose]();
    await start(at('new'));
    expect(await stateOf()).toMatchObject({ stoppedBy: null, nextDueAtMs: expect.any(Number) });
    await other[Symbol.asyncDispose]();
  });
});

describe('a restart', () => {
  test('keeps due times and queued events, and delivers urgent ones immediately', async () => {
    await start();
    const before = await stateOf();
    await queue('Wait for the next one.');
    await server[Symbol.asyncDispose]();
    await start();
    expect(await stateOf()).toMatchObject({ nextDueAtMs: before.nextDueAtMs, queuedEvents: 1 });
    await queue('Now, please.', { urgentReason: 'cron' });
    await server[Symbol.asyncDispose]();
    await start();
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    server.provider.queue({ text: 'HEARTBEAT_OK' });
    clock.advance(250);
    await expect.poll(() => ended).toMatchObject([{ status: 'settled', eventCount: 2 }]);
    expect(questions()).toHaveLength(1);
    await server[Symbol.asyncDispose]();
    await start();
    clock.advance(1_000);
    expect(await stateOf()).toMatchObject({ queuedEvents: 0, nextDueAtMs: before.nextDueAtMs });
    expect(questions()).toHaveLength(0);
  });

  test('in the middle of a beat resumes it once, under the same correlation id, and delivers its events once', async () => {
    await start();
    await queue('The mail came.');
    server.provider.queue({ hang: true });
    const admitted = server.heard('scheduler:heartbeat_wake_admitted');
    clock.advance(((await stateOf()).nextDueAtMs ?? 0) - clock.now());
    await expect.poll(() => server.provider.served()).toBe(1);
    expect((await stateOf()).tickStartedAtMs).not.toBeNull();
    await server[Symbol.asyncDispose]();

    server = await startTestServer({ clock, homeDir, config: { agents: on }, provider: { answer: () => ({ text: 'One mail.' }) } });
    await expect.poll(inbox).toEqual(['info: One mail.']);
    expect(questions()).toHaveLength(1);
    expect(questions()[0]).toContain('The mail came.');
    await expect.poll(async () => (await stateOf()).queuedEvents).toBe(0);
    expect(await stateOf()).toMatchObject({ tickStartedAtMs: null, consecutiveErrors: 0 });
    expect(admitted).toHaveLength(1);
    clock.advance(interval);
    await expect.poll(() => questions().length).toBe(2);
    expect(questions()[1]).not.toContain('The mail came.');
  });

  test('pending beats are cancelled with a report when the daemon stops', async () => {
    await start();
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    await server.client.call('scheduler.wake', { target: 'agent' });
    await server.server.drain();
    expect(ended).toMatchObject([{ status: 'cancelled_before_start', cancelReason: 'shutdown' }]);
  });
});

describe('agents that change', () => {
  test('do not beat while suspended, switched off or deleted, and beat again afterwards', async () => {
    await start({ agents: { default: { model: 'mock/mock-fast' } } });
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    await server.client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast', heartbeat: { enabled: true } } });
    await checklist('- Look\n', 'scout');
    expect((await stateOf('scout')).nextDueAtMs).not.toBeNull();
    const wake = () => server.client.call('scheduler.wake', { target: 'agent', agentId: 'scout' });
    await wake();
    await server.client.call('agents.suspend', { agentId: 'scout' });
    expect(await stateOf('scout')).toMatchObject({ nextDueAtMs: null });
    await expect(wake()).rejects.toMatchObject({ code: 'precondition_failed' });
    await server.client.call('agents.resume', { agentId: 'scout' });
    await wake();
    await server.client.call('heartbeat.update', { agentId: 'scout', enabled: false });
    await expect(wake()).rejects.toMatchObject({ code: 'precondition_failed' });
    await server.client.call('heartbeat.update', { agentId: 'scout', enabled: true });
    await wake();
    await server.client.call('agents.delete', { agentId: 'scout' });
    await expect(wake()).rejects.toMatchObject({ code: 'not_found' });
    expect(ended.map(({ cancelReason }) => cancelReason)).toEqual(['suspended', 'disabled', 'agent_deleted']);
    clock.advance(24 * 60 * minute);
    expect(server.provider.served()).toBe(0);
    expect((await server.client.call('heartbeat.states')).agents.map(({ agentId }) => agentId)).toEqual(['default']);
  });

  test('deleting one in the middle of its beat leaves nothing behind', async () => {
    await start({ agents: { default: { model: 'mock/mock-fast' } } });
    await server.client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast', heartbeat: { enabled: true } } });
    await queue('For the old one.', { agentId: 'scout' });
    const answered = Promise.withResolvers<void>();
    server.provider.queue({ text: 'Too late.', after: answered.promise });
    await server.client.call('heartbeat.trigger', { agentId: 'scout' });
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    clock.advance(250);
    await expect.poll(() => server.provider.served()).toBe(1);
    await server.client.call('agents.delete', { agentId: 'scout' });
    answered.resolve();
    await expect.poll(() => ended.length).toBe(1);
    expect(await inbox()).toEqual([]);
    await server.client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast', heartbeat: { enabled: true } } });
    expect(await stateOf('scout')).toMatchObject({ queuedEvents: 0, lastRunAtMs: null });
  });

  test('500 of them use one timer and do nothing between beats', async () => {
    const agents = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`agent-${n}`, { heartbeat: { enabled: true } }]));
    const timers = { set: 0, live: 0, most: 0 };
    const counting: StepClock = {
      ...clock,
      after(ms, run) {
        if (run.name !== 'pump') return clock.after(ms, run);
        let isLive = true;
        const end = () => {
          if (isLive) timers.live -= 1;
          isLive = false;
        };
        timers.set += 1;
        timers.live += 1;
        timers.most = Math.max(timers.most, timers.live);
        const cancel = clock.after(ms, () => (end(), run()));
        return () => (end(), cancel());
      },
    };
    server = await startTestServer({ clock: counting, homeDir, config: { agents: { default: { model: 'mock/mock-fast' }, ...agents } } });
    const { agents: states } = await server.client.call('heartbeat.states');
    const dues = states.flatMap(({ nextDueAtMs }) => nextDueAtMs ?? []);
    expect(dues).toHaveLength(500);
    expect(Math.max(...dues) - Math.min(...dues)).toBeGreaterThan(25 * minute);
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    timers.set = 0;
    for (let n = 0; n < 60; n += 1) {
      clock.advance(30_000);
      await expect.poll(() => ended.length).toBe(dues.filter((dueAtMs) => dueAtMs <= clock.now()).length);
    }
    expect(ended).toHaveLength(500);
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['skipped']));
    expect(timers.most).toBe(1);
    // The timer is set when beats start, when one ends, when one waits for the others, and once a minute.
    expect(timers.set).toBeLessThanOrEqual(3 * 500 + 60);
    expect(server.provider.served()).toBe(0);
  });
});
