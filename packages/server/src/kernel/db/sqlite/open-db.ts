import { mkdirSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../app-error.ts';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import type { Log } from '../../log.ts';
import type { Db, DbStatus } from '../db.ts';
import { logMigrations } from '../migration-steps.ts';
import type { Operation } from '../operation.ts';
import { lockFileOf } from '../../lifecycle/lock-name.ts';
import { databaseFile, telemetryFileName } from './database-files.ts';
import { type FileWatch, watchFiles } from './file-watch.ts';
import { finishRestore } from './finish-restore.ts';
import { replacedFiles } from './in-place.ts';
import { runTask, startFrom, type StartStorageThread, StorageThread } from './thread.ts';
import { tryWrite } from './try-write.ts';
import { type CallKind, callKinds } from './wire.ts';

export interface OpenDbOptions {
  readonly dataDir: string;
  /** Folder for the copy that is made before a schema change; `<dataDir>/backups` when absent. */
  readonly backupsDir?: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Named in refusals of files that a newer program wrote. */
  readonly programVersion?: string;
  /** The module of the storage threads; found next to this program when absent. */
  readonly workerUrl?: URL;
  /** Starts the storage threads in another way. */
  readonly startThread?: StartStorageThread | undefined;
  /** Checks the file in the background, after an unclean shutdown, once startup is over; `onDamage` is called when it is damaged. */
  readonly check?: boolean;
  readonly onDamage?: (error: StartError) => void;
  /** The files were removed or replaced while open (`fault`), or are back in place. */
  readonly onFiles?: (fault: string | undefined) => void;
  readonly maxPending?: number;
  /** Heartbeat of this thread: the writer thread, which exists anyway, kills the process when it stops. Another thread would cost 10 MB. */
  readonly heartbeat?: SharedArrayBuffer | undefined;
  /** Early reads go to the writer thread, so that a quiet daemon needs no other. */
  readonly settleMs?: number;
}

/** Searches take milliseconds each: more would wait for seconds. */
const maxSearches = 1_000;
const restartPauseMs = 1_000;
/** The check reads the whole file: startup, and the work it resumes, come first. */
const checkAfterMs = 10_000;
/** How often a write is attempted while the disk refuses writes: nobody else may ask for one. */
const tryMs = 5_000;

/**
 * Opens the SQLite storage of `dataDir`, which the caller has locked: starts the writer thread and waits until the
 * schema is up to date. No SQL runs on the calling thread.
 * @throws StartError when the file is damaged, foreign, newer than the program or cannot be opened.
 */
export async function openDb(options: OpenDbOptions): Promise<Db> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  finishRestore(options.dataDir);
  const db = new SqliteDb(options);
  try {
    await db.start();
  } catch (error) {
    await db[Symbol.asyncDispose]();
    throw error;
  }
  return db;
}

class SqliteDb implements Db {
  readonly #options: OpenDbOptions;
  readonly #startThread: StartStorageThread;
  readonly #file: string;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #maxPending: number;
  readonly #openedAt: number;
  readonly #closed = new AbortController();
  readonly #tasks = new Set<Promise<unknown>>();
  #writer: StorageThread;
  #writerStartedAt: number;
  #reader: StorageThread | undefined;
  #searcher: StorageThread | undefined;
  #searcherStartedAt = 0;
  #state: DbStatus['state'] = 'ok';
  #telemetryState: DbStatus['state'] = 'ok';
  #schemaVersion = 0;
  #files: FileWatch | undefined;
  #cancelTry = () => {};
  #cancelTelemetryTry = () => {};
  #cancelCheck = () => {};

  constructor(options: OpenDbOptions) {
    this.#options = options;
    this.#startThread = options.startThread ?? startFrom(options.workerUrl ?? defaultWorkerUrl());
    this.#file = databaseFile(options.dataDir);
    this.#log = options.log;
    this.#clock = options.clock;
    this.#maxPending = options.maxPending ?? 20_000;
    this.#openedAt = options.clock.monotonic();
    this.#writerStartedAt = this.#openedAt;
    this.#writer = this.#startWriter();
  }

  async start(): Promise<void> {
    const { schemaVersion, applied } = await this.#writer.ready;
    this.#schemaVersion = schemaVersion;
    this.#files = this.#watchFiles();
    logMigrations(this.#log, { applied, schemaVersion });
    if (this.#options.check === true) this.#cancelCheck = this.#clock.after(checkAfterMs, () => this.#track(this.#check()));
  }

  write<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    const fault = this.#files?.fault();
    if (fault !== undefined) return Promise.reject(new AppError('unavailable', replacedFiles(fault)));
    return this.#liveWriter().call(callKinds.write, operation.name, input) as Promise<Output>;
  }

  telemetry<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    return this.#liveWriter().call(callKinds.telemetry, operation.name, input) as Promise<Output>;
  }

  read<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    const kind: CallKind = callKinds.read;
    return this.#readingThread().call(kind, operation.name, input) as Promise<Output>;
  }

  search<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output> {
    return this.#searchThread().call(callKinds.read, operation.name, input) as Promise<Output>;
  }

  async backup(targetPath: string, onProgress?: (done: number, total: number) => void): Promise<{ readonly bytes: number }> {
    const task = runTask(this.#startThread, { role: 'backup', sourceFile: this.#file, targetFile: targetPath }, this.#closed.signal, onProgress);
    this.#track(task);
    return (await task) as { readonly bytes: number };
  }

  async status(): Promise<DbStatus> {
    const telemetry = databaseFile(this.#options.dataDir, telemetryFileName);
    const [bytes, walBytes, telemetryBytes] = await Promise.all([this.#file, `${this.#file}-wal`, telemetry].map(fileSize));
    return {
      driver: 'sqlite',
      path: this.#file,
      bytes: bytes ?? 0,
      walBytes: walBytes ?? 0,
      telemetryBytes: telemetryBytes ?? 0,
      schemaVersion: this.#schemaVersion,
      state: this.#files?.fault() === undefined ? this.#state : 'read_only',
      telemetryState: this.#telemetryState,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new AppError('unavailable', 'The storage is closed'));
    this.#files?.[Symbol.dispose]();
    this.#cancelTry();
    this.#cancelTelemetryTry();
    this.#cancelCheck();
    await Promise.allSettled(this.#tasks);
    await Promise.all([this.#reader?.close(), this.#searcher?.close()]);
    await this.#writer.close();
  }

  #watchFiles(): FileWatch {
    const { dataDir, onFiles } = this.#options;
    const telemetry = databaseFile(dataDir, telemetryFileName);
    const logs = [`${this.#file}-wal`];
    return watchFiles({
      files: [this.#file, ...logs, telemetry, lockFileOf(dataDir)],
      logs,
      clock: this.#clock,
      onChange: (fault) => {
        if (fault === undefined) this.#log.info({}, 'Database files are back in place');
        else this.#log.fatal({}, replacedFiles(fault));
        onFiles?.(fault === undefined ? undefined : replacedFiles(fault));
      },
    });
  }

  #startWriter(): StorageThread {
    return new StorageThread({
      start: this.#startThread,
      data: {
        role: 'writer',
        dataDir: this.#options.dataDir,
        backupsDir: this.#options.backupsDir ?? join(this.#options.dataDir, 'backups'),
        nowMs: this.#clock.now(),
        programVersion: this.#options.programVersion ?? 'unknown',
        heartbeat: this.#options.heartbeat,
      },
      maxPending: this.#maxPending,
      onState: (state) => {
        if (state === this.#state) return;
        this.#state = state;
        if (state === 'ok') this.#log.info({}, 'Database accepts writes again');
        else {
          this.#log.error({}, 'Database is read-only: its disk is full or failing');
          this.#tryLater();
        }
      },
      onTelemetryState: (state) => {
        if (state === this.#telemetryState) return;
        this.#telemetryState = state;
        if (state === 'ok') this.#log.info({}, 'Events and traces are stored again');
        else {
          this.#log.error({}, 'Events and traces are not stored: the disk of their file is full or failing');
          this.#tryTelemetryLater();
        }
      },
      onMoved: () => this.#files?.checkNow(),
      onCrash: (error) => {
        this.#state = 'read_only';
        if (error instanceof StartError) return;
        this.#log.error({ err: error }, 'Storage writer exited unexpectedly');
        this.#tryLater();
      },
    });
  }

  #tryLater(): void {
    this.#cancelTry();
    if (this.#closed.signal.aborted) return;
    this.#cancelTry = this.#clock.after(tryMs, () => {
      if (this.#state !== 'ok') this.write(tryWrite, {}).catch(() => this.#tryLater());
    });
  }

  #tryTelemetryLater(): void {
    this.#cancelTelemetryTry();
    if (this.#closed.signal.aborted) return;
    this.#cancelTelemetryTry = this.#clock.after(tryMs, () => {
      if (this.#telemetryState !== 'ok') this.telemetry(tryWrite, {}).catch(() => this.#tryTelemetryLater());
    });
  }

  /** Returns the writer; one that crashed is restarted by the next call, at most once a second. */
  #liveWriter(): StorageThread {
    const now = this.#clock.monotonic();
    if (this.#writer.ended && !this.#closed.signal.aborted && now - this.#writerStartedAt >= restartPauseMs) {
      this.#writerStartedAt = now;
      this.#writer = this.#startWriter();
    }
    return this.#writer;
  }

  /** Returns the reader, which the first read after the start starts; until then the writer answers, which has a connection for queries as well. */
  #readingThread(): StorageThread {
    const isSettled = this.#clock.monotonic() - this.#openedAt >= (this.#options.settleMs ?? 1_000);
    if (this.#reader === undefined && isSettled && !this.#closed.signal.aborted) this.#reader = this.#startReader();
    return this.#reader?.isReady === true ? this.#reader : this.#liveWriter();
  }

  /** Returns the search thread. The first search starts it; after a crash it is restarted like the writer. */
  #searchThread(): StorageThread {
    const now = this.#clock.monotonic();
    if (this.#searcher === undefined || (this.#searcher.ended && now - this.#searcherStartedAt >= restartPauseMs)) {
      // A closed storage has its writer refuse the call.
      if (this.#closed.signal.aborted) return this.#writer;
      this.#searcherStartedAt = now;
      this.#searcher = new StorageThread({
        start: this.#startThread,
        data: { role: 'search', dataDir: this.#options.dataDir },
        maxPending: maxSearches,
        onCrash: (error) => this.#log.error({ err: error }, 'Storage search thread exited unexpectedly'),
      });
    }
    return this.#searcher;
  }

  #startReader(): StorageThread {
    return new StorageThread({
      start: this.#startThread,
      data: { role: 'reader', dataDir: this.#options.dataDir },
      maxPending: this.#maxPending,
      onCrash: (error) => {
        this.#reader = undefined;
        this.#log.error({ err: error }, 'Storage reader exited unexpectedly');
      },
    });
  }

  async #check(): Promise<void> {
    try {
      await runTask(this.#startThread, { role: 'check', file: this.#file }, this.#closed.signal);
      this.#log.info({}, 'Database check after an unclean shutdown found no damage');
    } catch (error) {
      if (error instanceof StartError) this.#options.onDamage?.(error);
      else if (!this.#closed.signal.aborted) this.#log.warn({ err: error }, 'Database check did not finish');
    }
  }

  #track(task: Promise<unknown>): void {
    const settled = task.then(
      () => {},
      () => {},
    );
    this.#tasks.add(settled);
    void settled.then(() => this.#tasks.delete(settled));
  }
}

/** Sources run as they are; in the bundle the threads' module is next to the program. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? '../../../storage-worker.ts' : './storage-worker.js', import.meta.url);
}

async function fileSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch {
    return 0;
  }
}
