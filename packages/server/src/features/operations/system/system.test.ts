import { contract, events } from '@gatehouse/contract';
import { createStepClock, type StepClock } from '@gatehouse/testkit/step-clock';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallContext } from '../../../kernel/call-context.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { silentLog } from '../../../kernel/log.ts';
import { createLogger, type Logger } from '../../../kernel/logger.ts';
import { startMetrics } from './metrics.ts';
import { createSystem, type SystemDeps } from './system.ts';

const call: CallContext = {
  identity: { principalId: 'token:ops', tokenId: 'ops', scopes: ['admin'] },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
};

let clock: StepClock;
let logger: Logger;
let log: string[];
function system(changes: Partial<SystemDeps> = {}) {
  return createSystem({
    clock,
    log: silentLog,
    logger,
    version: '0.1.0',
    configFiles: ['/h/config.yaml'],
    sections: ['gateway'],
    supervised: false,
    openRpc: async () => ({ openrpc: '1.3.2', info: { title: 'Gatehouse', version: '0.1.0' }, methods: [{ name: 'system.ping' }] }),
    address: () => 'http://127.0.0.1:4766',
    connections: () => ({ http: 2, websocket: 1 }),
    turns: () => ({ running: 0, queued: 0 }),
    storage: async () => ({ driver: 'sqlite', path: '/h/data/gatehouse.db', bytes: 4096, walBytes: 0, schemaVersion: 1, state: 'ok' }),
    freeBytes: async () => undefined,
    jail: () => ({ state: 'unused' }),
    retention: async () => ({ nextAtMs: 0, kept: [] }),
    nodes: async () => undefined,
    isReplaced: () => false,
    checkConfig: async () => {},
    configuration: { restartNeeded: ['gateway.port'], fault: undefined },
    restart: () => log.push('restart'),
    audit: async (_call, what) => void log.push(`audit ${what.actionType} ${what.target ?? '-'}`),
    ...changes,
  }).methods;
}
beforeEach(() => {
  clock = createStepClock();
  log = [];
  logger = createLogger({ level: 'info', redact: (line) => line, write: (line) => log.push(JSON.parse(line).msg) });
});

test('system.ping returns the time', async () => {
  clock.advance(5);
  expect(await system()['system.ping']({}, call)).toEqual({ pong: true, ts: 1_790_000_000_005 });
});

test('rpc.discover creates the document once', async () => {
  let made = 0;
  const methods = system({ openRpc: async () => ({ openrpc: '1.3.2', info: { title: 'Gatehouse', version: String(++made) }, methods: [] }) });
  await methods['rpc.discover']({}, call);
  expect(contract['rpc.discover'].result.parse(await methods['rpc.discover']({}, call))).toMatchObject({ info: { version: '1' } });
});

test('gateway.status matches its schema', async () => {
  const methods = system();
  clock.advance(2500);
  expect(contract['gateway.status'].result.parse(await methods['gateway.status']({}, call))).toMatchObject({
    pid: process.pid,
    uptime: 2.5,
    connections: { http: 2, websocket: 1 },
    configPaths: ['/h/config.yaml'],
    restartNeeded: ['gateway.port'],
  });
});

test('gateway.status reports another installed build, and only then', async () => {
  const status = async (isReplaced: boolean) =>
    contract['gateway.status'].result.parse(await system({ isReplaced: () => isReplaced })['gateway.status']({}, call)).replaced;
  expect([await status(true), await status(false)]).toEqual([true, undefined]);
});

describe('gateway.restart', () => {
  test('answers, is recorded, and happens after the answer', async () => {
    const answer = await system({ supervised: true })['gateway.restart']({}, call);
    expect([answer, [...log]]).toEqual([{ restarting: true, systemd: true }, ['audit gateway.restart -']]);
    clock.advance(1000);
    expect(log).toEqual(['audit gateway.restart -', 'restart']);
  });

  test('that is requested again before it happens, happens once', async () => {
    const methods = system();
    await methods['gateway.restart']({}, call);
    clock.advance(100);
    expect(await methods['gateway.restart']({}, call)).toMatchObject({ restarting: true });
    clock.advance(1000);
    expect(log.filter((line) => line === 'restart')).toHaveLength(1);
    await methods['gateway.restart']({}, call);
    clock.advance(1000);
    expect(log.filter((line) => line === 'restart')).toHaveLength(2);
  });

  test('warns of running turns', async () => {
    expect(await system({ turns: () => ({ running: 2, queued: 0 }) })['gateway.restart']({}, call)).toMatchObject({
      warning: expect.stringContaining('2 running turns'),
    });
  });

  test('with a bad configuration is an error that names the key, and nothing happens', async () => {
    const methods = system({ checkConfig: async () => Promise.reject(new Error('config.yaml:2:3: gateway.prot: unknown key')) });
    await expect(methods['gateway.restart']({}, call)).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('config.yaml:2:3: gateway.prot: unknown key'),
    });
    clock.advance(1000);
    expect(log).toEqual([]);
  });
});

describe('daemon.setLogLevel', () => {
  test('changes the common level at once', async () => {
    const answer = contract['daemon.setLogLevel'].result.parse(await system()['daemon.setLogLevel']({ level: 'debug' }, call));
    expect(answer).toEqual({ updated: true, level: 'debug', scope: 'global', persistent: false });
    logger.log.debug({}, 'now seen');
    expect(log).toEqual(['audit daemon.setLogLevel -', 'now seen']);
  });

  test('or that of one module', async () => {
    const turns = logger.log.module('turns');
    expect(await system()['daemon.setLogLevel']({ level: 'trace', module: 'turns' }, call)).toMatchObject({ scope: 'module', module: 'turns' });
    expect([turns.enabled('trace'), logger.log.enabled('trace')]).toEqual([true, false]);
  });

  test('knows the modules', async () => {
    logger.log.module('turns');
    await expect(system()['daemon.setLogLevel']({ level: 'trace', module: 'turn' }, call)).rejects.toMatchObject({
      code: 'not_found',
      message: 'Unknown module: "turn". Modules: turns',
    });
    expect(log).toEqual([]);
  });

  test('is not done when it cannot be recorded', async () => {
    await expect(
      system({ audit: async () => Promise.reject(new Error('disk full')) })['daemon.setLogLevel']({ level: 'trace' }, call),
    ).rejects.toThrow('disk full');
    expect(logger.log.enabled('trace')).toBe(false);
  });
});

describe('observability:metrics', () => {
  let running: Disposable | undefined;
  afterEach(() => running?.[Symbol.dispose]());

  test('is sent every 30 seconds to listeners', () => {
    const bus = createEventBus(() => {});
    running = startMetrics({ clock, bus, activeTurns: () => 3 });
    clock.advance(40_000);
    const heard: unknown[] = [];
    const stop = bus.listen(['observability:metrics'], (event) => heard.push(events['observability:metrics'].payload.parse(event.payload)));
    clock.advance(22_000);
    expect(heard).toEqual([expect.objectContaining({ activeTurns: 3, uptimeSeconds: 61, timestamp: 1_790_000_061_000 })]);
    clock.advance(60_000);
    expect(heard).toHaveLength(3);
    stop();
    clock.advance(120_000);
    expect(heard).toHaveLength(3);
  });

  test('ends when it is disposed', () => {
    const bus = createEventBus(() => {});
    let heard = 0;
    bus.listen(['observability:metrics'], () => heard++);
    startMetrics({ clock, bus, activeTurns: () => 0 })[Symbol.dispose]();
    clock.advance(100_000);
    expect(heard).toBe(0);
  });
});
