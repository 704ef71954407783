import type { Live } from './live.ts';
import type { LoadedConfig } from './load.ts';

/** Returns the value of a secret by its name. */
export type SecretLookup = (name: string) => string | undefined;

/** What a reload found changed in the file, in dotted keys. */
export interface Applied {
  readonly changed: readonly string[];
  /** Those of `changed` that need a restart. */
  readonly restart: readonly string[];
}

/** The one object through which the configuration of a running daemon is read, checked and put in force. */
export interface Configuration<Config> {
  /** Path of config.yaml. */
  readonly file: string;
  /** The configuration in force. */
  readonly current: Config;
  /** The same, for what is rebuilt when a part of it changes. */
  readonly live: Live<Config>;
  /** Keys that differ between the file and what is in force, and need a restart. */
  readonly restartNeeded: readonly string[];
  /** Why config.yaml cannot be used, while an earlier configuration is in force; undefined otherwise. */
  readonly fault: string | undefined;
  /** Whether the file has another text than the one that was read last. */
  isStale(): boolean;
  /** Returns the present text of the file. */
  readText(): string;
  /**
   * Validates a text as the next start would, with and without the options and variables that override it.
   * @throws ConfigError that names every problem, with line, column, key and the nearest key
   */
  check(text: string): LoadedConfig<Config>;
  /**
   * Reads the file and the secrets again and puts live keys in force; returns when they are. `cause` names the reason in the log;
   * `verify` checks what this object cannot.
   * @throws ConfigError when the file cannot be used, or what `verify` throws; the configuration in force stays
   */
  reload(cause: string, verify?: (loaded: LoadedConfig<Config>) => Promise<void>): Promise<Applied>;
  /** Runs a change of the file, or of a secret that it uses, after all changes before it: each is checked against what the one before it left. */
  inTurn<T>(change: () => Promise<T>): Promise<T>;
  /** Sets where `${NAME}` is looked up when the environment has no such variable. */
  useSecrets(lookup: SecretLookup): void;
}
