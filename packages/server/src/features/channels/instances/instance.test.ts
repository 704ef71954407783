import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
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
