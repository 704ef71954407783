import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { NodesApi } from './api.ts';
import type { NodeLease } from './lease/lease.ts';
import { adoptNode, beginNode, claimLapsed, hasLapsed, listNodes, moveNode, renewNode } from './store.ts';

export interface NodesDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  /** Identifies the data folder, which this process has locked. */
  readonly homeId: string;
  /**
   * Whether the database is in that folder, as with SQLite. Then no other daemon can live: all earlier boots are dead at the start, and
   * nobody reads a lease, whose renewal would wake an idle disk every few seconds.
   */
  readonly isSole: boolean;
  readonly version: string;
  /** The lease of a shared database, which has this daemon's row already and is renewed elsewhere. */
  readonly lease?: Pick<NodeLease, 'listening' | 'fault'> | undefined;
}

export interface Nodes extends AsyncDisposable {
  readonly api: NodesApi;
}

/** How long a daemon may be silent before another one takes over. */
export const leaseMs = 10_000;
const renewMs = 3_000;
const keptMs = 30 * 24 * 60 * 60_000;

/**
 * Announces this daemon in the database, and claims what dead ones left: with a renewed lease as the sign of life, so that
 * several daemons can use one database (docs/decisions/0046).
 */
export async function createNodes({ db, clock, log, bootId, homeId, isSole, version, lease }: NodesDeps): Promise<Nodes> {
  const recoveries: (() => Promise<void>)[] = [];
  let address: string | null = null;
  let isLost = false;
  let isFailing = false;
  /** Whether claimed boots left something that a failed recovery has not recovered. */
  let owesRecovery = false;

  const prunedBeforeMs = clock.ageNow() - keptMs;
  if (lease === undefined)
    await db.write(beginNode, { bootId, homeId, version, role: 'active', leaseMs, isSole: isSole ? 1 : 0, atMs: clock.now(), prunedBeforeMs });
  else await db.write(adoptNode, { bootId, homeId, isSole: 0, atMs: clock.now(), prunedBeforeMs });

  async function renew(): Promise<void> {
    if (isLost) return;
    isLost = !(await db.write(renewNode, { bootId, address, leaseMs, atMs: clock.now() }));
    if (isLost) log.fatal({}, 'Another daemon has taken over the work of this one: restart it');
    else if (isFailing) log.info({}, 'The lease of this daemon is renewed again');
    isFailing = false;
  }

  async function check(): Promise<void> {
    if (isLost) return;
    const claiming = { bootId, homeId, isSole: 0 as const, atMs: clock.now() };
    const claimed = (await db.read(hasLapsed, claiming)) ? await db.write(claimLapsed, claiming) : [];
    for (const { bootId: lost, address: at, state } of claimed)
      if (state === 'claimed') log.warn({ bootId: lost, address: at }, 'Taking over the work of a daemon that is silent');
    owesRecovery ||= claimed.length > 0;
    if (!owesRecovery) return;
    for (const recover of recoveries) await recover();
    owesRecovery = false;
  }

  /** Records that this daemon stops; without it others wait for the end of its lease. */
  const move = (state: 'draining' | 'ended') =>
    db.write(moveNode, { bootId, state }).catch((error: unknown) => log.warn({ err: error, state }, 'Failed to record that this daemon stops'));

  function renewLater(error: unknown): void {
    // Storage that fails says so itself.
    if (!isFailing) log.warn({ err: error }, 'Failed to renew the lease of this daemon; trying again');
    isFailing = true;
  }

  const timers = new AsyncDisposableStack();
  if (!isSole) {
    if (lease === undefined) timers.use(repeat({ clock, everyMs: renewMs, run: renew, onError: renewLater }));
    const onError = (error: unknown) => log.error({ err: error }, 'Failed to take over from another daemon');
    timers.use(repeat({ clock, everyMs: leaseMs / 2, run: check, onError }));
  }

  return {
    api: {
      bootId,
      onClaimed: (recover) => void recoveries.push(recover),
      listening(at) {
        address = at;
        if (lease !== undefined) return lease.listening(at);
        return renew().catch(renewLater);
      },
      list: async () => (isSole ? undefined : db.read(listNodes, { bootId, atMs: clock.now() })),
      drain: () => move('draining'),
      fault: () => lease?.fault() ?? (isLost ? 'Another daemon has taken over the work of this one' : undefined),
    },
    async [Symbol.asyncDispose]() {
      await timers.disposeAsync();
      // A shared lease ends when nothing of this daemon is written any more.
      if (lease === undefined) await move('ended');
    },
  };
}
