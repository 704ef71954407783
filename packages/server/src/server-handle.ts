import type { HomePaths } from './kernel/home-paths.ts';
import type { Clock } from './kernel/clock.ts';
import type { Configuration } from './kernel/config/configuration.ts';
import type { Db } from './kernel/db/db.ts';
import type { NodeLease } from './features/operations/nodes/lease/lease.ts';
import type { SecretVault } from './features/operations/secrets/vault/vault.ts';
import type { StartStorageThread } from './kernel/db/sqlite/thread.ts';
import type { Lifetime } from './kernel/lifecycle/lifetime.ts';
import type { FreeSpace } from './kernel/disk-space.ts';
import type { Egress, EgressOptions } from './kernel/egress.ts';
import type { EventBus } from './kernel/event-bus.ts';
import type { InstallKey } from './kernel/install-key.ts';
import type { Load } from './kernel/lifecycle/load.ts';
import type { Log } from './kernel/log.ts';
import type { Logger } from './kernel/logger.ts';
import type { Redactor } from './kernel/redact.ts';
import type { RootConfig } from './config-schema.ts';
import type { McpOffer } from './gateway/mcp/offer.ts';
import type { Discovery } from './llm/create-models.ts';
import type { Probe } from './llm/discover.ts';
import type { Tool } from './runtime/tool.ts';

/** The place of this daemon among those that share a database: the active one. Owned by the caller that started the server. */
export interface SharedNode {
  /** The lifetime of this boot, with the lock of the home folder. */
  readonly lifetime: Lifetime;
  /** Keeps nothing once another daemon has the lease. */
  readonly db: Db;
  readonly lease: Pick<NodeLease, 'listening' | 'fault'>;
  /** Returns why the database server has accepted no writes for some seconds; `report` is called with each change. */
  watchStorage(report: (fault: string | undefined) => void): void;
}

export interface ServerOptions {
  /** The configuration of the start, for what needs a restart to change. */
  readonly config: RootConfig;
  readonly configuration: Configuration<RootConfig>;
  readonly home: HomePaths;
  readonly installKey: InstallKey;
  /** Secrets of the store as this process has them. */
  readonly secrets: SecretVault;
  /** Version of the program, as reported by `/health`. */
  readonly version: string;
  /** Given where the database is shared; otherwise the server opens its own. */
  readonly node?: SharedNode | undefined;
  /** Files that the configuration was read from. */
  readonly configFiles: readonly string[];
  /** Variables searched for keys of model providers. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The token created at first start, scope `*`. */
  readonly generatedToken?: { readonly id: string; readonly secret: string } | undefined;
  readonly log: Log;
  readonly logger: Pick<Logger, 'setLevel' | 'modules' | 'reset' | 'recent'>;
  readonly redactor: Pick<Redactor, 'redact' | 'hide' | 'add' | 'replace'>;
  /** Kills the process when its event loop is blocked for thirty seconds. Not for tests, whose clocks stand still. */
  readonly watchdog?: boolean;
  /** True when something outside restarts the daemon after it exits. */
  readonly supervised: boolean;
  /** Reads and validates the configuration on disk, before a restart. */
  readonly checkConfig: () => Promise<void>;
  /** Stops this server and starts another one; returns at once. */
  readonly restart: () => void;
  /** Replacements for the outside world, used by tests. */
  readonly overrides?: {
    readonly clock?: Clock;
    /** Probes local model servers; null: does not. */
    readonly probe?: Probe | null;
    /** Wraps the database: for suites that let a process die at a write. */
    readonly db?: (db: Db) => Db;
    /** Replaces the measurement of the event loop: a test must not depend on other work of the machine. */
    readonly load?: Load;
    /** The module of the storage threads of PostgreSQL. */
    readonly storageWorker?: URL;
    /** Starts the storage threads of SQLite. */
    readonly startStorageThread?: StartStorageThread;
    readonly freeSpace?: (folder: string) => Promise<FreeSpace>;
    readonly badResults?: 'throw' | 'log';
    /** Tools in addition to the built-in ones. */
    readonly tools?: readonly Tool[];
    /** Replaces the agents and their workspaces, for suites that test the protocol. */
    readonly mcpOffer?: McpOffer;
    /** Source of repository archives. */
    readonly archives?: Pick<Egress, 'request'>;
    /** Names and addresses of the test's own servers. */
    readonly egress?: Pick<EgressOptions, 'resolve' | 'allowAddresses'>;
  };
}

/** A running server. Disposing of it stops everything in reverse order of construction. */
export interface ServerHandle extends AsyncDisposable {
  /** Address of the listener; null when `gateway.enabled` is false. */
  readonly address: string | null;
  /** Model providers that were found. */
  readonly discovery: Discovery;
  /** Warnings for the person at the terminal. */
  readonly warnings: readonly string[];
  readonly bus: EventBus;
  /** Stops accepting work and waits for running work, up to `gateway.drainTimeoutMs`; then aborts it. */
  drain(): Promise<void>;
}
