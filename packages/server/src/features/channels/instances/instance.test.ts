import { createStepClock } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { irc } from '../../../channels/irc/platform.ts';
import type { Adapter, Ended } from '../../../channels/port.ts';
import { Instance, type InstanceDeps } from './instance.ts';

test('disconnects after its sender has ended', async () => {
  const steps: string[] = [];
  const adapter: Pick<Adapter, 'run'> = {
    run(signal, sink) {
      sink.connected('gate');
      const { promise, resolve } = Promise.withResolvers<Ended>();
      signal.addEventListener('abort', () => {
        steps.push('disconnect');
        resolve({ ended: 'stopped', text: '' });
      });
      return promise;
    },
  };
  const sending = Promise.withResolvers<void>();
  const sender = {
    isPaused: false,
    wake() {},
    async run(signal: AbortSignal) {
      signal.addEventListener('abort', () => steps.push('stop'));
      await sending.promise;
      steps.push('sent');
    },
  };
  const deps: Partial<InstanceDeps> = {
    clock: createStepClock(),
    log: { info() {}, error() {} } as never,
    bus: { emit() {} } as never,
    open: () => Promise.resolve({ platform: irc, adapter: adapter as Adapter }),
    createSender: () => sender,
    cursorOf: () => Promise.resolve(undefined),
  };
  const instance = new Instance(deps as InstanceDeps, 'net', { type: 'irc' } as never);
  instance.start();
  await expect.poll(() => instance.state).toBe('healthy');
  const stopped = instance.stop();
  expect(steps).toEqual(['stop']);
  sending.resolve();
  await stopped;
  expect(steps).toEqual(['stop', 'sent', 'disconnect']);
  expect(instance.state).toBe('disabled');
});

test('a stop while it reads how far it has received connects to nothing', async () => {
  let connects = 0;
  const adapter: Pick<Adapter, 'run'> = {
    run() {
      connects += 1;
      return new Promise(() => {});
    },
  };
  const reading = Promise.withResolvers<undefined>();
  const asked = Promise.withResolvers<void>();
  const deps: Partial<InstanceDeps> = {
    clock: createStepClock(),
    log: { info() {}, error() {} } as never,
    bus: { emit() {} } as never,
    open: () => Promise.resolve({ platform: irc, adapter: adapter as Adapter }),
    createSender: () => ({ isPaused: false, wake() {}, run: () => Promise.resolve() }),
    cursorOf: () => (asked.resolve(), reading.promise),
  };
  const instance = new Instance(deps as InstanceDeps, 'net', { type: 'irc' } as never);
  instance.start();
  await asked.promise;
  const stopped = instance.stop();
  reading.resolve(undefined);
  await stopped;
  expect(connects).toBe(0);
});

const started: Instance[] = [];
afterEach(async () => {
  for (const instance of started.splice(0)) await instance.stop();
});

/** An instance whose connections end at once with a reason; undefined: they stay up. */
function outage(ended: () => Ended | undefined) {
  const clock = createStepClock();
  /** Times of the connects. */
  const tries: number[] = [];
  const adapter: Pick<Adapter, 'run'> = {
    run(signal, sink) {
      tries.push(clock.monotonic());
      const end = ended();
      if (end !== undefined) return Promise.resolve(end);
      sink.connected('gate');
      const { promise, resolve } = Promise.withResolvers<Ended>();
      signal.addEventListener('abort', () => resolve({ ended: 'stopped', text: '' }));
      return promise;
    },
  };
  const deps: Partial<InstanceDeps> = {
    clock,
    log: { info() {}, warn() {}, error() {} } as never,
    bus: { emit() {} } as never,
    open: () => Promise.resolve({ platform: irc, adapter: adapter as Adapter }),
    createSender: () => ({ isPaused: false, wake() {}, run: () => Promise.resolve() }),
    cursorOf: () => Promise.resolve(undefined),
  };
  const instance = new Instance(deps as InstanceDeps, 'net', { type: 'irc' } as never);
  started.push(instance);
  instance.start();
  return { instance, tries, pass: (ms: number) => passTime(clock, ms) };
}

/** Lets time pass in steps that are short against the pauses; returns the largest number of timers that were pending. */
async function passTime(clock: ReturnType<typeof createStepClock>, ms: number): Promise<number> {
  let timers = 0;
  for (const endsAt = clock.monotonic() + ms; clock.monotonic() < endsAt; clock.advance(250)) {
    await new Promise((resolve) => setImmediate(resolve));
    timers = Math.max(timers, clock.pending());
  }
  return timers;
}
const down: Ended = { ended: 'transient', text: 'refused' };

test('a platform that is down for an hour is asked at most sixty times, ever less often, with one timer', async () => {
  const { instance, tries, pass } = outage(() => down);
  expect(await pass(60 * 60_000)).toBe(1);
  expect(tries.length).toBeGreaterThan(20);
  expect(tries.length).toBeLessThanOrEqual(60);
  expect(tries.filter((at) => at > 30 * 60_000).length).toBeLessThanOrEqual(10);
  expect(instance).toMatchObject({ state: 'errored', error: 'refused', failures: tries.length });
});

test('a failure of some minutes is over at most half a minute after its end', async () => {
  let isDown = true;
  const { instance, tries, pass } = outage(() => (isDown ? down : undefined));
  await pass(5 * 60_000);
  isDown = false;
  await pass(30_000);
  expect(instance.state).toBe('healthy');
  const connects = tries.length;
  expect(await pass(60 * 60_000)).toBe(0);
  expect(tries).toHaveLength(connects);
});

test('two clients of one account: it is named, and tried again once a minute', async () => {
  const { instance, tries, pass } = outage(() => ({ ended: 'conflict', text: 'another program receives the messages' }));
  await pass(10 * 60_000);
  expect(tries.length).toBeGreaterThanOrEqual(9);
  expect(tries.slice(1).every((at, index) => at - (tries[index] ?? 0) >= 60_000)).toBe(true);
  expect(instance.error).toBe('another program receives the messages');
});

test('a login that is refused is not tried again', async () => {
  const { instance, tries, pass } = outage(() => ({ ended: 'unauthorized', text: 'wrong token' }));
  expect(await pass(60 * 60_000)).toBe(0);
  expect(tries).toHaveLength(1);
  expect(instance.state).toBe('unauthorized');
});
