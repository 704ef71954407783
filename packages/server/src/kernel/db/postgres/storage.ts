import { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import type { Migration, Operation } from '../operation.ts';
import { indexOperations, type Unit } from '../unit.ts';
import { Connection, findServer, type Purpose } from './connection.ts';
import type { ServerAddress } from './server-address.ts';
import type { Guard } from './guard.ts';
import { createLanes } from './lanes.ts';
import { Link } from './link.ts';
import { placeOf } from './place.ts';
import { migratePostgres } from './migrate.ts';
import { isConnectionFailure, LostConnection } from './postgres-errors.ts';
import { createReads } from './reads.ts';
import { type Inspection, inspectServer } from './server-settings.ts';
import { createTransactions } from './transaction.ts';

export interface PostgresParts {
  readonly operations: readonly Operation<never, unknown>[];
  readonly migrations: readonly Migration[];
}

export interface PostgresStorageOptions extends PostgresParts {
  readonly address: ServerAddress;
  /** Connections of this process: those that write, two or more for reading, one for telemetry and one for searches. */
  readonly poolSize: number;
  readonly clock: Clock;
  readonly programVersion: string;
  readonly onState: (state: 'ok' | 'read_only', reason?: string) => void;
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
/** How often a write is tried while the disk of the server is full: nobody else may ask for one. */
const tryMs = 5_000;

/** Connects, brings the schema up to date and checks the settings. @throws StartError when the server cannot be used */
export async function openPostgresStorage(options: PostgresStorageOptions): Promise<PostgresStorage> {
  const { address, clock, onState } = options;
  const findOperation = indexOperations(options.operations);
  const { schemaVersion, programSchema, applied } = await starting(options, () => migrate(options));
  const { version: serverVersion, warnings, bytes } = await starting(options, () => inspect(options));

  let isDiskFull = false;
  let isAway = false;
  let reported: 'ok' | 'read_only' = 'ok';
  let cancelTry = () => {};
  function report(reason?: string): void {
    const state = isAway || isDiskFull ? 'read_only' : 'ok';
    if (state === reported) return;
    reported = state;
    onState(state, reason);
  }
  function onReach(error: unknown): void {
    isAway = error !== undefined;
    report(error instanceof Error ? error.message : undefined);
  }
  function onDisk(state: 'ok' | 'failed'): void {
    isDiskFull = state === 'failed';
    report('the disk of the database server is full or failing');
    cancelTry();
    if (isDiskFull) cancelTry = clock.after(tryMs, tryDisk);
  }
  /** Writes a record to the log of the server without changing data. */
  function tryDisk(): void {
    const connection = lanes[0]?.current;
    const attempt = connection?.send(`SELECT pg_logical_emit_message(true, 'gatehouse', repeat('x', 8192))`) ?? Promise.reject(new Error('away'));
    attempt.then(
      () => onDisk('ok'),
      () => onDisk('failed'),
    );
  }

  const linkOf = (purpose: Purpose) =>
    new Link({
      clock,
      ...(purpose === 'lane' && { onReach }),
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
    createTransactions({ link, findOperation, clock, guard: () => guard, onFenced: options.onFenced ?? (() => {}), onDisk });
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
      // The server went away: `onState` says so.
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
      cancelTry();
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

/** Connects once, and returns what the server is. @throws StartError when it cannot be used */
export async function checkPostgresServer(options: Pick<PostgresStorageOptions, 'address' | 'clock'>): Promise<Inspection> {
  try {
    return await inspect(options);
  } catch (error) {
    throw explainStart(error, options.address.url);
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
  const text = error instanceof Error ? error.message : String(error);
  return new StartError('unusable', `Cannot use the database ${placeOf(url)}: ${text}`, { cause: error });
}
