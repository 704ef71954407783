import { AppError } from '../../app-error.ts';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import type { Log } from '../../log.ts';
import type { Db, DbStatus } from '../db.ts';
import { logMigrations } from '../migration-steps.ts';
import type { Operation } from '../operation.ts';
import type { Guard } from './guard.ts';
import type { ServerAddress } from './server-address.ts';
import { placeOf, postgresBackups } from './place.ts';
import type { StorageFault } from './storage.ts';
import { PostgresThread } from './thread.ts';
import { callKinds } from './wire.ts';

export interface OpenPostgresOptions {
  readonly address: ServerAddress;
  readonly poolSize?: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Recorded with each step of the schema. */
  readonly programVersion?: string;
  /** The module of the storage threads; found next to this program when absent. */
  readonly workerUrl?: URL | undefined;
  readonly maxPending?: number;
  /** The server has accepted no writes for some seconds (`fault`), or does so again. */
  readonly onFault?: (fault: string | undefined) => void;
  /** Heartbeat of this thread: the storage thread kills the process when it stops. */
  readonly heartbeat?: SharedArrayBuffer | undefined;
}

/** A database that several daemons use. */
export interface SharedDb extends Db {
  /** The newest schema that the program knows. */
  readonly programSchema: number;
  /** Keeps no later write unless this is the active node; `onFenced` is called when one was refused. */
  guard(guard: Guard, onFenced: () => void): void;
}

export const defaultPoolSize = 8;
/** Searches take milliseconds each: more would wait for seconds. */
const maxSearches = 1_000;
const restartPauseMs = 1_000;
/** Until then a call waits for the server; afterwards new work is refused at once. */
const faultAfterMs = 5_000;
const faultTexts: Readonly<Record<StorageFault, string>> = {
  away: 'The database server accepts no writes: nothing can be stored until it does',
  disk: 'The disk of the database server is full or failing: nothing can be stored until it has space and works',
};

/**
 * Connects to PostgreSQL in a storage thread and waits until the schema is up to date. No SQL runs on the calling thread.
 * @throws StartError when the server cannot be used, or its schema is newer than the program
 */
export async function openPostgresDb(options: OpenPostgresOptions): Promise<SharedDb> {
  const db = new PostgresDb(options);
  try {
    await db.start();
  } catch (error) {
    await db[Symbol.asyncDispose]();
    throw error;
  }
  return db;
}

/** Connects once, without changing anything. @throws the reason why the server cannot be used */
export async function checkPostgres(address: ServerAddress): Promise<{ readonly serverVersion: string; readonly warnings: readonly string[] }> {
  const data = { role: 'postgres-check', address, poolSize: 0, programVersion: '', heartbeat: undefined } as const;
  const thread = new PostgresThread({ workerUrl: defaultWorkerUrl(), data, maxPending: 0, onCrash: () => {} });
  return thread.ready;
}

class PostgresDb implements SharedDb {
  readonly #options: OpenPostgresOptions;
  readonly #workerUrl: URL;
  readonly #log: Log;
  readonly #clock: Clock;
  #writer: PostgresThread;
  #writerStartedAt: number;
  #searcher: PostgresThread | undefined;
  #searcherStartedAt = 0;
  #fault: StorageFault | undefined;
  #schemaVersion = 0;
  #programSchema = 0;
  #serverVersion = '';
  #bytes = 0;
  #isClosed = false;
  #guard: Guard | undefined;
  #onFenced = () => {};
  #cancelFault = () => {};

  constructor(options: OpenPostgresOptions) {
    this.#options = options;
    this.#workerUrl = options.workerUrl ?? defaultWorkerUrl();
    this.#log = options.log;
    this.#clock = options.clock;
    this.#writerStartedAt = options.clock.monotonic();
    this.#writer = this.#startWriter();
  }

  async start(): Promise<void> {
    const { schemaVersion, programSchema, applied, serverVersion, warnings } = await this.#writer.ready;
    this.#schemaVersion = schemaVersion;
    this.#programSchema = programSchema;
    this.#serverVersion = serverVersion;
    for (const warning of warnings) this.#log.warn({}, warning);
    logMigrations(this.#log, { applied, schemaVersion });
  }

  write<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    return this.#liveWriter().call(callKinds.write, operation.name, input) as Promise<Output>;
  }

  telemetry<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    return this.#liveWriter().call(callKinds.telemetry, operation.name, input) as Promise<Output>;
  }

  read<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    return this.#liveWriter().call(callKinds.read, operation.name, input) as Promise<Output>;
  }

  search<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    return this.#searchThread().call(callKinds.read, operation.name, input) as Promise<Output>;
  }

  get programSchema(): number {
    return this.#programSchema;
  }

  guard(guard: Guard, onFenced: () => void): void {
    this.#guard = guard;
    this.#onFenced = onFenced;
    this.#writer.guard(guard);
  }

  backup(): Promise<never> {
    return Promise.reject(new AppError('precondition_failed', postgresBackups));
  }

  async status(): Promise<DbStatus> {
    this.#bytes = await this.#writer.call(callKinds.bytes, '', undefined).then(
      (bytes) => bytes as number,
      () => this.#bytes,
    );
    return {
      driver: 'postgres',
      path: placeOf(this.#options.address.url),
      bytes: this.#bytes,
      walBytes: 0,
      schemaVersion: this.#schemaVersion,
      serverVersion: this.#serverVersion,
      state: this.#fault === undefined ? 'ok' : 'read_only',
      ...(this.#fault === 'disk' && { reason: 'the disk of the database server is full or failing' }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelFault();
    await this.#searcher?.close();
    await this.#writer.close();
  }

  #startWriter(): PostgresThread {
    const thread = new PostgresThread({
      workerUrl: this.#workerUrl,
      data: this.#threadData('postgres'),
      maxPending: this.#options.maxPending ?? 20_000,
      onFault: (fault, reason) => {
        if (fault === this.#fault) return;
        if (fault === undefined) this.#log.info({}, 'Database accepts writes again');
        else this.#log.error({ reason }, 'Database does not accept writes');
        this.#setFault(fault);
      },
      onCrash: (error) => {
        this.#setFault('away');
        if (error instanceof StartError) return;
        this.#log.error({ err: error }, 'Storage thread exited unexpectedly');
      },
      onFenced: () => this.#onFenced(),
    });
    if (this.#guard !== undefined) thread.guard(this.#guard);
    return thread;
  }

  #setFault(fault: StorageFault | undefined): void {
    const { onFault } = this.#options;
    const before = this.#fault;
    this.#fault = fault;
    if (fault === before || this.#isClosed) return;
    this.#cancelFault();
    if (fault === undefined) onFault?.(undefined);
    else this.#cancelFault = this.#clock.after(faultAfterMs, () => onFault?.(faultTexts[fault]));
  }

  /** Returns the writer; one that crashed is restarted by the next call, at most once a second. */
  #liveWriter(): PostgresThread {
    const now = this.#clock.monotonic();
    if (this.#writer.ended && !this.#isClosed && now - this.#writerStartedAt >= restartPauseMs) {
      this.#writerStartedAt = now;
      const writer = this.#startWriter();
      this.#writer = writer;
      writer.ready.then(
        () => this.#setFault(undefined),
        () => {},
      );
    }
    return this.#writer;
  }

  /** Returns the search thread. The first search starts it; after a crash it is restarted like the writer. */
  #searchThread(): PostgresThread {
    const now = this.#clock.monotonic();
    if (this.#searcher === undefined || (this.#searcher.ended && now - this.#searcherStartedAt >= restartPauseMs)) {
      // A closed storage has its writer refuse the call.
      if (this.#isClosed) return this.#writer;
      this.#searcherStartedAt = now;
      this.#searcher = new PostgresThread({
        workerUrl: this.#workerUrl,
        data: this.#threadData('postgres-search'),
        maxPending: maxSearches,
        onCrash: (error) => this.#log.error({ err: error }, 'Storage search thread exited unexpectedly'),
      });
    }
    return this.#searcher;
  }

  #threadData(role: 'postgres' | 'postgres-search') {
    const { address, poolSize = defaultPoolSize, programVersion = 'unknown', heartbeat } = this.#options;
    return { role, address, poolSize, programVersion, heartbeat: role === 'postgres' ? heartbeat : undefined };
  }
}

/** Sources run as they are; in the bundle the threads' module is next to the program. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? '../../../postgres-worker.ts' : './postgres-worker.js', import.meta.url);
}
