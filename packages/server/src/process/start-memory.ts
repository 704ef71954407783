import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../kernel/clock.ts';

const quietMs = 1_000;
/** Share of the time in which the event loop may work while the process counts as idle. */
const idleShare = 0.1;

/** Nearly all that a start allocates stays, so collecting it meanwhile costs a tenth of the start and frees little. */
export function beginStartMemory(): void {
  setFlagsFromString('--no-incremental-marking');
  setFlagsFromString('--semi-space-growth-factor=8');
}

export interface StartMemoryDeps {
  readonly clock: Clock;
  /** Returns the share of the time since its previous call in which the event loop worked. */
  readonly busyShare?: () => number;
  readonly collect?: () => void;
  /** Called once, before anything else changes. */
  readonly onEnd: () => void;
}

/**
 * Ends `beginStartMemory` a second after the start. In the first idle second it returns the memory that only the start needed:
 * V8 keeps the space of new objects as large as the busiest moment made it.
 */
export function endStartMemory({ clock, busyShare = createBusyShare(), collect = collectAll, onEnd }: StartMemoryDeps): void {
  function collectWhenIdle(): void {
    if (busyShare() <= idleShare) collect();
    else clock.after(quietMs, collectWhenIdle);
  }
  clock.after(quietMs, () => {
    onEnd();
    collectWhenIdle();
    setFlagsFromString('--incremental-marking');
    setFlagsFromString('--semi-space-growth-factor=2');
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
