import type { Clock } from '../kernel/clock.ts';
import type { HttpCall } from './http-call.ts';

/** Resolves when the client has read what was sent, or is gone; one that reads nothing for `stallMs` is cut. */
export function drained(call: HttpCall, clock: Clock, stallMs: number): Promise<void> {
  const { outgoing } = call;
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(stallMs, () => call.cut());
  const done = (): void => {
    cancel();
    outgoing.off('drain', done).off('close', done);
    resolve();
  };
  outgoing.on('drain', done).on('close', done);
  return promise;
}
