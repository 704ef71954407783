import { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import type { Migration, Operation } from '../operation.ts';
import { indexOperations, type Unit } from '../unit.ts';
import { Connection, findServer, type Purpose } from './connection.ts';
import { probeDisk } from './disk-space.ts';
import type { ServerAddress } from './server-address.ts';
import type { Guard } from './guard.ts';
import { createLanes } from './lanes.ts';
import { Link } from './link.ts';
import { placeOf } from './place.ts';
import { migratePostgres } from './migrate.ts';
import { explainPostgresError, isConnectionFailure, isDiskFailure, isUnknownAuthority, LostConnection, sqlState } from './postgres-errors.ts';
import { createReads } from './reads.ts';
import { type Inspection, inspectServer } from './server-settings.ts';
import { createTransactions } from './transaction.ts';

export interface PostgresParts {
  readonly operations: readonly Operation<never, unknown>[];
  readonly migrations: readonly Migration[];
}

/** Why nothing can be stored: the server cannot be reached or refuses writes, or its disk is full or failing. */
export type StorageFault = 'away' | 'disk';

export interface PostgresStorageOptions extends PostgresParts {
  readonly address: ServerAddress;
  /** Connections of this process: those that write, two or more for reading, one for telemetry and one for searches. */
  readonly poolSize: number;
  readonly clock: Clock;
  readonly programVersion: string;
  /** The server accepts no writes, or does so again. */
  readonly onFault: (fault: StorageFault | undefined, reason?: string) => void;
  /** Called at each write that the guard refuses. */
  readonly onFenced?: () => void;
}

/** The engine in the thread that runs it. Results are a `Failure` instead of a rejection. */
export interface PostgresStorage {
  readonly schemaVersion: number;
  readonly programSchema: number;
  readonly applied: readonly string[];
  readonly serverVersion: string;
  readonly warnings: readonly string[];
  write(unit: Unit): Promise<unknown>;
  telemetry(unit: Unit): Promise<unknown>;
  read(unit: Unit): Promise<unknown>;
  /** Keeps no later write unless this is the active node. */
  guard(guard: Guard): void;
  /** Returns the size of the database as it was last measured, and measures it again: health checks must not wait for a server. */
  bytes(): number;
  close(): Promise<void>;
}

/** How long a start waits for a server that is starting as well. */
const startMs = 10_000;
const startPauseMs = 250;
/** How often the disk of the server is looked at while it is full. */
const probeMs = 2_000;

/** Connects, brings the schema up to date and checks the settings. @throws StartError when the server cannot be used */
export async function openPostgresStorage(options: PostgresStorageOptions): Promise<PostgresStorage> {
  const { address, clock, onFault } = options;
  const findOperation = indexOperations(options.operations);
  const { schemaVersion, programSchema, applied } = await starting(options, () => migrate(options));
  const { version: serverVersion, warnings, bytes } = await starting(options, () => inspect(options));

  let isDiskFull = false;
  let isAway = false;
  let isClosed = false;
  let reported: StorageFault | undefined;
  let cancelProbe = () => {};
  function report(reason?: string): void {
    // A server that cannot extend its log ends: it is away because its disk is full.
    const fault = isDiskFull ? 'disk' : isAway ? 'away' : undefined;
    if (fault === reported) return;
    reported = fault;
    onFault(fault, reason);
  }
  function onReach(error: unknown): void {
    // The server allows no more connections: the open ones continue to write.
    if (sqlState(error) === '53300' && lanes.some(({ current }) => current !== undefined)) return;
    isAway = error !== undefined;
    report(error instanceof Error ? error.message : undefined);
  }
  function onDiskFailure(error: unknown): void {
    isDiskFull = true;
    report(error instanceof Error ? error.message : undefined);
    cancelProbe();
    cancelProbe = clock.after(probeMs, () => void probe());
  }
  /** A commit proves nothing: a full disk has space for small changes. */
  async function probe(): Promise<void> {
    try {
      await checkDisk(options);
    } catch (error) {
      if (!isClosed) onDiskFailure(error);
      return;
    }
    isDiskFull = false;
    report();
  }

  const linkOf = (purpose: Purpose) =>
    new Link({
      clock,
      ...(purpose === 'lane' && { onReach }),
      onSilence(silence) {
        for (const link of [...lanes, fast, ...readers]) link.suspect(silence);
      },
      async connect() {
        const connection = await Connection.open({ address, purpose, clock });
        if (purpose !== 'read' && connection.facts.readOnly) {
          await connection.close();
          throw new LostConnection('the database server accepts no writes: it is a standby, or default_transaction_read_only is on');
        }
        return connection;
      },
    });
  const counts = divide(options.poolSize);
  const lanes = Array.from({ length: counts.lanes }, () => linkOf('lane'));
  const fast = linkOf('fast');
  const readers = Array.from({ length: counts.readers }, () => linkOf('read'));
  const transactions = (link: Link) =>
    createTransactions({ link, findOperation, clock, guard: () => guard, onFenced: options.onFenced ?? (() => {}), onDiskFailure });
  const writes = createLanes(lanes.map(transactions));
  const telemetry = createLanes([transactions(fast)]);
  const reads = createReads({ links: readers, findOperation });
  const stamp = (unit: Unit) => ({ ...unit, enteredAt: clock.monotonic() });
  let lastBytes = bytes;
  let guard: Guard | undefined;
  let measure: Promise<void> | undefined;

  async function measureBytes(): Promise<void> {
    const connection = [...readers, ...lanes].find(({ current }) => current !== undefined)?.current;
    try {
      const found = await connection?.execute(undefined, 'SELECT pg_database_size(current_database()) AS bytes', []);
      if (found !== undefined) lastBytes = (found.rows[0] as { bytes: number }).bytes;
    } catch {
      // The server went away: `onFault` says so.
    }
  }

  return {
    schemaVersion,
    programSchema,
    applied,
    serverVersion,
    warnings,
    write: (unit) => writes.add(stamp(unit)),
    telemetry: (unit) => telemetry.add(stamp(unit)),
    read: (unit) => reads.add(stamp(unit)),
    guard(given) {
      guard = given;
    },
    bytes() {
      measure ??= measureBytes().finally(() => (measure = undefined));
      return lastBytes;
    },
    async close() {
      await Promise.all([writes.idle(), telemetry.idle(), reads.idle()]);
      isClosed = true;
      cancelProbe();
      await Promise.all([...lanes, fast, ...readers].map((link) => link.close()));
    },
  };
}

/** One connection for searches, whose operations may keep state by their `Tx`. */
export function openPostgresSearch({ address, operations, clock }: Pick<PostgresStorageOptions, 'address' | 'operations' | 'clock'>): {
  search(unit: Unit): Promise<unknown>;
  close(): Promise<void>;
} {
  const link = new Link({ clock, connect: () => Connection.open({ address, purpose: 'search', clock }) });
  const reads = createReads({ links: [link], findOperation: indexOperations(operations), stateful: true });
  return {
    search: (unit) => reads.add({ ...unit, enteredAt: clock.monotonic() }),
    async close() {
      await reads.idle();
      await link.close();
    },
  };
}

/** Telemetry and searches take one connection each. */
function divide(poolSize: number): { readonly lanes: number; readonly readers: number } {
  const rest = Math.max(2, poolSize - 2);
  const lanes = Math.min(Math.ceil((2 * rest) / 3), rest - 1);
  return { lanes, readers: rest - lanes };
}

async function migrate({ address, migrations, clock, programVersion }: PostgresStorageOptions) {
  const { url, ssl } = await findServer(address, clock);
  const client = new Client({
    connectionString: url,
    ...(ssl !== undefined && { ssl }),
    application_name: 'gatehouse schema',
    connectionTimeoutMillis: startMs,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return await migratePostgres(client, migrations, { nowMs: clock.now(), programVersion });
  } finally {
    await client.end().catch(() => {});
  }
}

/** Connects and returns what the server is, without changing anything. @throws StartError when it cannot be used, or its disk is full */
export async function checkPostgresServer(options: Pick<PostgresStorageOptions, 'address' | 'clock'>): Promise<Inspection> {
  try {
    await checkDisk(options);
    return await inspect(options);
  } catch (error) {
    throw explainStart(error, options.address.url);
  }
}

async function checkDisk({ address, clock }: Pick<PostgresStorageOptions, 'address' | 'clock'>): Promise<void> {
  const connection = await Connection.open({ address, purpose: 'read', clock });
  try {
    await probeDisk(connection);
  } finally {
    await connection.close();
  }
}

async function inspect({ address, clock }: Pick<PostgresStorageOptions, 'address' | 'clock'>): Promise<Inspection> {
  const connection = await Connection.open({ address, purpose: 'read', clock });
  try {
    return await inspectServer(connection);
  } finally {
    await connection.close();
  }
}

/** Runs a step of the start again while the server cannot be reached yet, and explains what is wrong with it. */
async function starting<T>({ address, clock }: PostgresStorageOptions, step: () => Promise<T>): Promise<T> {
  const until = clock.monotonic() + startMs;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isConnectionFailure(error) || clock.monotonic() >= until) throw explainStart(error, address.url);
      await new Promise<void>((resolve) => clock.after(startPauseMs, resolve));
    }
  }
}

function explainStart(error: unknown, url: string): StartError {
  if (error instanceof StartError) return error;
  const explained = isDiskFailure(error) ? explainPostgresError(error) : error;
  const text = isUnknownAuthority(error)
    ? 'no known authority has signed its certificate: name the file of its authority in storage.sslCaPath'
    : explained instanceof Error
      ? explained.message
      : String(explained);
  return new StartError('unusable', `Cannot use the database ${placeOf(url)}: ${text}`, { cause: error });
}
