import type { Operation } from './operation.ts';

/** State of the storage; `read_only` after a full disk or an I/O error until a write succeeds again, and while the server is away. */
export interface DbStatus {
  readonly driver: 'sqlite' | 'postgres';
  /** The file of SQLite; of PostgreSQL the URL without user and password. */
  readonly path: string;
  readonly bytes: number;
  /** 0 on PostgreSQL, whose log belongs to all databases of the server. */
  readonly walBytes: number;
  /** Size of the second file of SQLite. */
  readonly telemetryBytes?: number;
  readonly schemaVersion: number;
  /** Set for PostgreSQL. */
  readonly serverVersion?: string;
  readonly state: 'ok' | 'read_only';
  /** Why it is read-only, where that is known. */
  readonly reason?: string;
  /** The same of the second file of SQLite, whose disk may be another one: nothing but events and traces depends on it. */
  readonly telemetryState?: 'ok' | 'read_only';
}

/**
 * The narrow waist: named operations in, plain data out (decisions §10). A resolved `write` is synced to disk;
 * writes of one caller apply in the order of their calls; a failed one leaves nothing behind.
 * `telemetry` goes to the second file, acknowledged without a sync.
 */
export interface Db extends AsyncDisposable {
  write<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
  telemetry<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
  read<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
  /**
   * Reads in a separate thread, started by the first call, so that long searches delay no other reader. Its operations
   * may keep state between calls, keyed by the `Tx`, which stays the same object while the thread lives.
   */
  search<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
  /** Online copy, integrity-checked, synced and renamed into place; progress in pages. */
  backup(targetPath: string, onProgress?: (done: number, total: number) => void): Promise<{ readonly bytes: number }>;
  status(): Promise<DbStatus>;
}
