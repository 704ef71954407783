import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../kernel/clock.ts';

const quietMs = 1_000;
/** Share of the time in which the event loop may work while the process counts as idle. */
const idleShare = 0.1;

export interface StartMemoryDeps {
  readonly clock: Clock;
  /** Returns the share of the time since its previous call in which the event loop worked. */
  readonly busyShare?: () => number;
  readonly collect?: () => void;
  /** Called once, before anything is collected. */
  readonly onEnd: () => void;
}

/**
 * A second after the start, returns the memory that only the start needed: V8 keeps the space of new objects as large as the busiest moment
 * made it. A daemon that works by then keeps it, because it would pay for it in the next thousands of requests: the collection also drops
 * optimized code whose objects are all gone at that moment. No flag of V8 is set before: under other flags V8 accepts no compiled code,
 * neither of the bundle nor of Node.
 */
export function endStartMemory({ clock, busyShare = createBusyShare(), collect = collectAll, onEnd }: StartMemoryDeps): void {
  clock.after(quietMs, () => {
    onEnd();
    if (busyShare() <= idleShare) collect();
  });
}

function createBusyShare(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}

function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect: (options: object) => void = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
