import * as z from 'zod';
import type { Clock } from '../../../../kernel/clock.ts';
import { machineUptimeMs } from '../../../../kernel/clock.ts';
import { StartError } from '../../../../kernel/lifecycle/start-error.ts';
import type { Log } from '../../../../kernel/log.ts';
import * as statements from './statements.ts';

/** A connection to PostgreSQL. */
export interface LeaseSession {
  execute(
    name: string | undefined,
    text: string,
    values: unknown[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly rowCount: number | null }>;
  readonly isOpen: boolean;
  close(): Promise<void>;
}

/** A daemon that shares the database. */
export interface NodeIdentity {
  readonly bootId: string;
  readonly homeId: string;
  readonly version: string;
}

export interface LeaseTimes {
  /** How long a daemon may be silent before another one takes over. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** The daemon stops this long before its lease ends, and its programs are killed. */
  readonly marginMs: number;
  readonly retryMs: number;
}

export interface LeaseOptions {
  readonly connect: () => Promise<LeaseSession>;
  readonly self: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly times?: LeaseTimes;
  /** Programs of this daemon may run until then, in milliseconds of `machineUptimeMs`. */
  readonly onRenewed: (untilUptimeMs: number) => void;
  /** Another daemon has taken over; called once. */
  readonly onLost: () => void;
}

/** Another daemon that holds the lease. */
export interface Holder {
  readonly bootId: string;
  readonly version: string | null;
  readonly address: string | null;
  readonly schemaVersion: number;
}

export type Attempt = { readonly acquired: true; readonly fence: number } | { readonly acquired: false; readonly holder: Holder };

/** The place of this daemon among those of one database: a standby, until it acquires the one lease. */
export interface NodeLease {
  /** Adds this daemon as a standby, and renews its lease from now on. */
  standBy(): Promise<void>;
  /**
   * Takes the lease when nobody holds it, for a program that knows schemas up to `schemaVersion`.
   * @throws StartError when a newer program has changed the schema so that this one cannot use it.
   */
  tryAcquire(schemaVersion: number): Promise<Attempt>;
  /** Returns the current holder other than this daemon; undefined when there is none, or the database is new. */
  holder(): Promise<Holder | undefined>;
  /** Why this daemon may not work now: its lease has nearly ended, by its own clock, or another daemon has it. */
  fault(): string | undefined;
  /** Stores the address at which this daemon is reached. */
  listening(address: string): Promise<void>;
  /** Returns the fingerprint of the key that this database is used with: the given one when it is the first. */
  keepFingerprint(fingerprint: string): Promise<string>;
  /** Notes that a commit was refused, because another daemon has the lease. */
  lost(): void;
  /** Ends the lease at once, so that a standby need not wait for its end. */
  release(): Promise<void>;
}

export const leaseTimes: LeaseTimes = { leaseMs: 10_000, renewMs: 3_000, marginMs: 2_000, retryMs: 500 };

const HolderRow = z.object({
  nowMs: z.int(),
  bootId: z.string(),
  fence: z.int(),
  schemaVersion: z.int(),
  compatibleFrom: z.int().nullable(),
  version: z.string().nullable(),
  address: z.string().nullable(),
  state: z.enum(['free', 'lapsed', 'held']),
});

/** Times of rows are those of the daemon: jobs, budgets and limits of one whose clock is far off would come early or late. */
const clockWarningMs = 2_000;
const clockRefusalMs = 30_000;
const Renewed = z.object({ nowMs: z.int() });

const Found = z.object({ found: z.union([z.boolean(), z.int()]).transform(Boolean) });

export function createLease(options: LeaseOptions): NodeLease {
  const { connect, self, clock, log, onRenewed, onLost, times = leaseTimes } = options;
  const { bootId } = self;
  let session: LeaseSession | undefined;
  let address: string | null = null;
  /** Set while this daemon is the active one. */
  let fence: number | undefined;
  /** Time of this daemon's clock, counted from before the renewal was sent. */
  let leaseUntilMs = 0;
  let isRegistered = false;
  let isLost = false;
  let isFailing = false;
  let isClockOff = false;
  let isEnded = false;
  /** Silence after the database was away may be its fault: nothing is taken over before others could have renewed. */
  let patientUntilMs = Number.NEGATIVE_INFINITY;
  let cancel = () => {};
  /** What uses the connection, one after the other: a take-over is a transaction. */
  let queue: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = queue.then(work);
    queue = done.catch(() => {});
    return done;
  }

  async function run(text: string, values: unknown[] = []): Promise<readonly unknown[]> {
    if (session?.isOpen !== true) {
      const isFirst = session === undefined;
      session = await connect();
      if (!isFirst) patientUntilMs = clock.monotonic() + times.leaseMs;
    }
    return (await session.execute(undefined, text, values)).rows;
  }

  /** Counts from before the request was sent: the database counts from later. */
  function noteRenewal(sentAtMs: number, sentUptimeMs: number): void {
    leaseUntilMs = sentAtMs + times.leaseMs;
    onRenewed(sentUptimeMs + times.leaseMs - times.marginMs);
  }

  function lose(): void {
    if (isLost || isEnded) return;
    isLost = true;
    cancel();
    onLost();
  }

  async function renew(): Promise<void> {
    const [sentAtMs, sentUptimeMs] = [clock.monotonic(), machineUptimeMs()];
    const beforeMs = clock.now();
    const [row] =
      fence === undefined
        ? await run(statements.renewStandby, [bootId, times.leaseMs, address])
        : await run(statements.renewActive, [bootId, times.leaseMs, address, fence]);
    if (row !== undefined) noteClock(beforeMs, Renewed.parse(row).nowMs);
    if (fence === undefined) {
      if (row === undefined) await register();
    } else if (row === undefined) lose();
    else noteRenewal(sentAtMs, sentUptimeMs);
  }

  /** Returns how far this daemon's clock is ahead of that of the database, at least; `beforeMs` is the time at which it was asked. */
  function noteClock(beforeMs: number, nowMs: number): number {
    const afterMs = clock.now();
    const aheadMs = beforeMs > nowMs ? beforeMs - nowMs : Math.min(0, afterMs - nowMs);
    const isOff = Math.abs(aheadMs) > clockWarningMs;
    if (isOff && !isClockOff) log.warn({ aheadMs }, `The clock of this machine is ${describeOffset(aheadMs)} that of the database: synchronize both`);
    isClockOff = isOff;
    return aheadMs;
  }

  const register = () => run(statements.register, [bootId, self.homeId, address, self.version, times.leaseMs]);

  function renewIn(ms: number): void {
    cancel = clock.after(ms, () => {
      inTurn(renew).then(
        () => {
          if (isFailing) log.info({}, 'The lease of this daemon is renewed again');
          isFailing = false;
          if (!isEnded && !isLost) renewIn(times.renewMs);
        },
        (error: unknown) => {
          if (!isFailing) log.warn({ err: error }, 'Failed to renew the lease of this daemon; trying again');
          isFailing = true;
          if (!isEnded && !isLost) renewIn(times.retryMs);
        },
      );
    });
  }

  async function readHolder(): Promise<z.output<typeof HolderRow>> {
    const [row] = await run(statements.readHolder);
    return HolderRow.parse(row);
  }

  const isOpen = ({ state }: { readonly state: 'free' | 'lapsed' | 'held' }) =>
    state === 'free' || (state === 'lapsed' && clock.monotonic() >= patientUntilMs);

  async function takeOver(schemaVersion: number): Promise<number | undefined> {
    await run('BEGIN ISOLATION LEVEL READ COMMITTED');
    try {
      await run(statements.lockHolder);
      const found = await readHolder();
      refuseNewer(found.compatibleFrom, schemaVersion);
      if (isOpen(found)) {
        const [row] = await run(statements.takeOver, [bootId, schemaVersion]);
        if ((await run(statements.becomeActive, [bootId, times.leaseMs])).length > 0) {
          await run('COMMIT');
          return z.object({ fence: z.int() }).parse(row).fence;
        }
      }
      await run('ROLLBACK');
      return undefined;
    } catch (error) {
      // A transaction of unknown outcome: the next attempt finds out whom the row names.
      await session?.close().catch(() => {});
      throw error;
    }
  }

  function refuseNewer(compatibleFrom: number | null, schemaVersion: number): void {
    if (compatibleFrom !== null && compatibleFrom > schemaVersion)
      throw new StartError(
        'newer_schema',
        `A newer version has changed the schema of the database meanwhile; version ${self.version} cannot use it.`,
      );
  }

  function refuseClock(aheadMs: number): void {
    if (Math.abs(aheadMs) > clockRefusalMs)
      throw new StartError(
        'clock_off',
        `The clock of this machine is ${describeOffset(aheadMs)} that of the database: jobs and budgets would follow a wrong time. Synchronize both clocks.`,
      );
  }

  async function acquire(schemaVersion: number): Promise<Attempt> {
    const [sentAtMs, sentUptimeMs] = [clock.monotonic(), machineUptimeMs()];
    const beforeMs = clock.now();
    const found = await readHolder();
    refuseClock(noteClock(beforeMs, found.nowMs));
    // It is this daemon after a commit whose answer was lost.
    const got = found.bootId === bootId && found.state === 'held' ? found.fence : isOpen(found) ? await takeOver(schemaVersion) : undefined;
    if (got === undefined) return { acquired: false, holder: found };
    fence = got;
    noteRenewal(sentAtMs, sentUptimeMs);
    return { acquired: true, fence: got };
  }

  async function findHolder(): Promise<Holder | undefined> {
    const [row] = await run(statements.hasTables);
    if (Found.parse(row).found === false) return undefined;
    const found = await readHolder();
    return found.state === 'held' && found.bootId !== bootId ? found : undefined;
  }

  async function end(): Promise<void> {
    try {
      if (isRegistered && !isLost) await run(statements.endNode, [bootId]);
      if (!isLost && fence !== undefined) await run(statements.release, [bootId, fence]);
    } catch (error) {
      log.warn({ err: error }, 'Failed to end the lease of this daemon: a standby waits until it ends');
    }
    await session?.close();
  }

  return {
    async standBy() {
      await inTurn(register);
      isRegistered = true;
      renewIn(times.renewMs);
    },
    tryAcquire: (schemaVersion) => inTurn(() => acquire(schemaVersion)),
    holder: () => inTurn(findHolder),
    fault() {
      if (isLost) return 'Another daemon has taken over';
      if (fence !== undefined && clock.monotonic() >= leaseUntilMs - times.marginMs)
        return 'The lease of this daemon could not be renewed in time: it works again when the database answers';
      return undefined;
    },
    async listening(at) {
      address = at;
      if (isRegistered) await inTurn(renew).catch((error: unknown) => log.warn({ err: error }, 'Failed to store the address of this daemon'));
    },
    keepFingerprint: (fingerprint) =>
      inTurn(async () => {
        const [row] = await run(statements.keepFingerprint, [fingerprint]);
        return z.object({ fingerprint: z.string() }).parse(row).fingerprint;
      }),
    lost: lose,
    release() {
      isEnded = true;
      cancel();
      return inTurn(end);
    },
  };
}

function describeOffset(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}
