import { pause } from './daemon.ts';
import { type Node, type Nodes, takeOverMs } from './nodes.ts';

/** What is proved over a take-over: it prepares things on the active daemon, and checks them on the one that takes over. */
export interface TakeoverPart {
  prepare(active: Node, standby: Node): Promise<void>;
  /** Does what the active daemon acknowledges just before it dies; it may die earlier. */
  strike(active: Node): Promise<void>;
  /** Runs while no daemon is active, until `signal` aborts. */
  during?(next: Node, signal: AbortSignal): Promise<void>;
  /** Returns what is wrong on the daemon that took over; `diedAt` is of `performance.now()`. */
  check(next: Node, diedAt: number): Promise<readonly string[]>;
  /** Stops what is left, for the next round. */
  end?(next: Node): Promise<void>;
}

export interface Death {
  /** A frozen daemon wakes up after the take-over. */
  readonly by: 'kill' | 'freeze';
  /** Milliseconds after the strike has begun; when it is over if absent. */
  readonly afterMs?: number;
  /** Ends the lease in the database instead of waiting for its end: a frozen daemon then believes in it when it wakes up. */
  readonly lapses: boolean;
}

const wakeMs = 30_000;
/** A model call that was sent before the death may be read after it. */
export const deliveryMs = 100;

/** Plays one take-over; returns what is wrong. Both daemons are ready; the next one is active afterwards, and the other one is gone. */
export async function playTakeover(
  nodes: Nodes,
  [active, next]: readonly [Node, Node],
  parts: readonly TakeoverPart[],
  death: Death & { readonly withinMs: number | undefined },
) {
  const wrong: string[] = [];
  for (const part of parts) await part.prepare(active, next);
  const strikes = Promise.all(parts.map((part) => part.strike(active)));
  await (death.afterMs === undefined ? strikes : Promise.race([strikes, pause(death.afterMs)]));
  if (death.by === 'kill') await active.kill();
  else active.child.kill('SIGSTOP');
  const diedAt = performance.now();
  const isReady = new AbortController();
  const meanwhile = Promise.all(parts.map(async (part) => part.during?.(next, isReady.signal)));
  if (death.lapses) await nodes.lapse();
  const readyMs = await nodes.ready(next);
  // A frozen daemon may hold locks for some seconds, which a real lease outlasts.
  const isLimited = !(death.lapses && death.by === 'freeze');
  if (isLimited && readyMs > (death.withinMs ?? takeOverMs)) wrong.push(`the standby was ready after ${Math.round(readyMs)} ms`);
  isReady.abort();
  await meanwhile;
  // The calls of a killed daemon have failed; those of a frozen one are answered by nobody until it wakes up.
  if (death.by === 'kill') await strikes;
  wrong.push(...(await Promise.all(parts.map((part) => part.check(next, diedAt)))).flat());
  if (death.by === 'freeze') {
    active.child.kill('SIGCONT');
    const exit = await Promise.race([active.exited, pause(wakeMs).then(() => undefined)]);
    if (exit?.code !== 76)
      wrong.push(`the frozen daemon ${exit === undefined ? 'still runs' : `ended with ${exit.code ?? exit.signal}`} after it woke up`);
    await strikes;
    wrong.push(...(await Promise.all(parts.map((part) => part.check(next, diedAt)))).flat().map((line) => `after it woke up: ${line}`));
  }
  for (const part of parts) await part.end?.(next);
  return { readyMs, wrong };
}
