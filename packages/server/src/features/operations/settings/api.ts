import type { CallContext } from '../../../kernel/call-context.ts';
import type { Edit } from '../../../kernel/config/edit.ts';

/**
 * Where a version comes from: a call over the network, a call of the owner on this machine (the command line), an edit of the file by
 * hand, a rollback, or `agents.*`.
 */
export type VersionOrigin = 'rpc' | 'cli' | 'file' | 'rollback' | 'agents';

/** A text that config.yaml had. */
export interface ConfigVersion {
  /** 1 for the first start, without gaps until `config.gc`. */
  readonly number: number;
  /** SHA-256 of the text, in hexadecimal digits. */
  readonly digest: string;
  readonly atMs: number;
  readonly principalId: string;
  readonly origin: VersionOrigin;
  readonly summary: string;
  readonly section: string | null;
  readonly key: string | null;
  readonly traceId: string | null;
}

/** A change of the configuration by another feature. */
export interface ConfigChange {
  /** The edits, or a function that returns them for the present text, which no other change can replace meanwhile. */
  readonly edits: readonly Edit[] | ((text: string) => readonly Edit[] | Promise<readonly Edit[]>);
  /** What changes, in a few words, for the history and the audit. */
  readonly summary: string;
  readonly section: string;
  readonly key?: string | undefined;
  readonly origin: VersionOrigin;
  readonly actionType: string;
  /** How the audit classifies the change: `destructive` when absent. */
  readonly classification?: AuditClass | undefined;
  /** What the audit names; section and key when absent. */
  readonly target?: string | undefined;
  /** Validates, and changes nothing. */
  readonly dryRun?: boolean | undefined;
}

export type AuditClass = 'mutate' | 'destructive' | 'security';

/** What a change did. */
export interface ChangedConfig {
  readonly version: number;
  readonly digest: string;
  /** Dotted keys whose value changed; empty when the document had the value already. */
  readonly changed: readonly string[];
  /** Those of `changed` that need a restart. */
  readonly restart: readonly string[];
}

export interface SettingsApi {
  /** Whether the caller may change keys that decide who may do what. */
  isOwner(call: CallContext): boolean;
  /**
   * Changes config.yaml: validates the whole, stores a version, writes the file, and puts live keys in force. The caller has checked that
   * `call` may do this.
   */
  change(change: ConfigChange, call: CallContext): Promise<ChangedConfig>;
  /**
   * Brings config.yaml and its versions together: stores an edit by hand, which must be valid, and completes what a crash cut off.
   * Returns true when the file was replaced, so that it must be read again. `isStandby`: the file was edited while this daemon stood by.
   */
  settle(options?: { readonly isStandby: boolean }): Promise<boolean>;
  /**
   * Puts an edit by hand in force, and stores it as a version.
   * @throws ConfigError for one that cannot be used; what is in force stays
   */
  adopt(): Promise<void>;
}
