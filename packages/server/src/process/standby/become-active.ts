import type { RootConfig } from '../../config-schema.ts';
import { createLease, type Holder, type NodeLease } from '../../features/operations/nodes/lease/lease.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Connection } from '../../kernel/db/postgres/connection.ts';
import { openPostgresDb, type SharedDb } from '../../kernel/db/postgres/open-postgres.ts';
import { serverAddress } from '../../kernel/db/postgres/server-address.ts';
import type { HomePaths } from '../../kernel/home-paths.ts';
import type { InstallKey } from '../../kernel/install-key.ts';
import { type LeaseWatchdog, startLeaseWatchdog } from '../../kernel/lifecycle/lease-watchdog.ts';
import { beginLifetime } from '../../kernel/lifecycle/lifetime.ts';
import { StartError } from '../../kernel/lifecycle/start-error.ts';
import { beginHeartbeat } from '../../kernel/lifecycle/watchdog.ts';
import type { Log } from '../../kernel/log.ts';
import { sleep } from '../../kernel/timers.ts';
import type { SharedNode } from '../../server-handle.ts';
import { openStandby, type Standby } from './open-standby.ts';

export interface BecomeActiveOptions {
  readonly config: RootConfig;
  readonly home: HomePaths;
  readonly installKey: InstallKey;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Kills the process when its event loop is blocked. */
  readonly watchdog: boolean;
  /** The daemon is asked to stop. */
  readonly signal: AbortSignal;
  /** Called when this daemon has to wait; `address` is where it reports so. */
  readonly onStandby: (address: string | null) => void;
  /** Another daemon has taken over: nothing of this one is kept any more. Called once. */
  readonly onLost: () => void;
}

/** Disposed of after the server that uses it: ends the lease, so that a standby takes over at once. */
export interface ActiveNode extends SharedNode, AsyncDisposable {}

/** How often a standby checks whether the lease is free. */
const pollMs = 1_000;

/**
 * Opens the shared database and waits until this daemon is the active one. While another one is, only a listener that says so is
 * open. Returns undefined when the daemon is stopped meanwhile.
 * @throws StartError when the database or its key cannot be used
 */
export async function becomeActive(options: BecomeActiveOptions): Promise<ActiveNode | undefined> {
  const { config, home, clock, log, signal } = options;
  await using opened = new AsyncDisposableStack();
  const lifetime = opened.use(beginLifetime(home.dataDir, clock));
  const address = serverAddress(config.storage, home.dir);
  let watchdog: LeaseWatchdog | undefined;
  opened.defer(() => watchdog?.[Symbol.asyncDispose]());
  const lease = createLease({
    connect: () => Connection.open({ address, purpose: 'lease', clock }),
    self: { bootId: lifetime.bootId, homeId: lifetime.homeId, version: options.version },
    clock,
    log,
    onRenewed(untilUptimeMs) {
      watchdog ??= startLeaseWatchdog({ clock, log });
      watchdog.mayRunUntil(untilUptimeMs);
    },
    onLost() {
      // The next start need not look for what a crash left: everything of this one was refused.
      lifetime[Symbol.dispose]();
      options.onLost();
    },
  });
  opened.defer(() => lease.release());
  await using waiting = new Waiting(options, lease);

  const heartbeat = options.watchdog ? opened.use(beginHeartbeat(clock)).beats : undefined;
  let report = (_fault: string | undefined) => {};
  const { poolSize } = config.storage;
  const onFault = (fault: string | undefined) => report(fault);
  const open = () => openPostgresDb({ address, poolSize, clock, log, programVersion: options.version, heartbeat, onFault });
  const db = await openWhenAllowed(open, waiting, lease, options);
  if (db === undefined) return undefined;
  opened.use(db);
  await checkKey(lease, options.installKey);
  await lease.standBy();
  const fence = await acquire(db, waiting, lease, options);
  if (fence === undefined || signal.aborted) return undefined;
  db.guard({ bootId: lifetime.bootId, fence }, lease.lost);
  log.info({ fence }, 'This node is the active one');
  const owned = opened.move();
  return {
    lifetime,
    db,
    lease,
    watchStorage(listener) {
      report = listener;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The listener of a standby, opened when there is something to wait for. */
class Waiting implements AsyncDisposable {
  readonly #options: BecomeActiveOptions;
  readonly #lease: NodeLease;
  #standby: Standby | undefined;
  /** Why this daemon could not take over now. */
  fault: string | undefined;

  constructor(options: BecomeActiveOptions, lease: NodeLease) {
    this.#options = options;
    this.#lease = lease;
  }

  async round(reason: string): Promise<void> {
    const { clock, log, signal, onStandby } = this.#options;
    if (this.#standby === undefined) {
      this.#standby = await openStandby({ ...this.#options, fault: () => this.fault });
      const { address } = this.#standby;
      if (address !== null) await this.#lease.listening(address);
      log.info({ address, reason }, 'Standing by');
      onStandby(address);
    }
    await sleep(clock, pollMs, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#standby?.[Symbol.asyncDispose]();
  }
}

/** A newer program changes the schema only when the active one can continue with it. */
async function openWhenAllowed(open: () => Promise<SharedDb>, waiting: Waiting, lease: NodeLease, { signal }: BecomeActiveOptions) {
  while (!signal.aborted) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof StartError) || error.reason !== 'awaits_active') throw error;
      const before = await lease.holder();
      let holder: Holder | undefined = before;
      do {
        await waiting.round(error.message);
        holder = await lease.holder().catch(() => before);
      } while (!signal.aborted && holder !== undefined && holder.bootId === before?.bootId);
    }
  }
  return undefined;
}

async function acquire(db: SharedDb, waiting: Waiting, lease: NodeLease, { signal, log }: BecomeActiveOptions): Promise<number | undefined> {
  while (!signal.aborted) {
    try {
      const attempt = await lease.tryAcquire(db.programSchema);
      if (attempt.acquired) return attempt.fence;
      waiting.fault = undefined;
    } catch (error) {
      if (error instanceof StartError) throw error;
      if (waiting.fault === undefined) log.warn({ err: error }, 'Failed to look for the active node; trying again');
      waiting.fault = 'the database cannot be used: this node cannot take over until it can';
    }
    await waiting.round('another node is active');
  }
  return undefined;
}

async function checkKey(lease: NodeLease, installKey: InstallKey): Promise<void> {
  const own = installKey.fingerprint();
  const kept = await lease.keepFingerprint(own);
  if (kept === own) return;
  throw new StartError(
    'other_key',
    `The database is used with the install key of fingerprint ${kept}, and this daemon has the one of fingerprint ${own}: give all daemons of a database the same GATEHOUSE_MASTER_KEY or GATEHOUSE_MASTER_KEY_FILE.`,
  );
}
