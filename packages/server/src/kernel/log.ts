/** Structured log of one module; every line passes the redactor before it is written. */
export interface Log {
  fatal(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
  trace(fields: LogFields, message: string): void;
  /** True when a line of this level would be written: hot paths ask before they build one. */
  enabled(level: 'debug' | 'trace' | 'info'): boolean;
  /** Returns the log of a module, which may have its own level. */
  module(name: string): Log;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Writes nothing; for tests. */
export const silentLog: Log = {
  fatal() {},
  error() {},
  warn() {},
  info() {},
  debug() {},
  trace() {},
  enabled: () => false,
  module: () => silentLog,
};
