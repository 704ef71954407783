import type { HomePaths } from './kernel/home-paths.ts';
import type { Clock } from './kernel/clock.ts';
import type { Db } from './kernel/db/db.ts';
import type { FreeSpace } from './kernel/disk-space.ts';
import type { Egress, EgressOptions } from './kernel/egress.ts';
import type { EventBus } from './kernel/event-bus.ts';
import type { InstallKey } from './kernel/install-key.ts';
import type { Log } from './kernel/log.ts';
import type { Logger } from './kernel/logger.ts';
import type { Redactor } from './kernel/redact.ts';
import type { RootConfig } from './config-schema.ts';
import type { McpOffer } from './gateway/mcp/offer.ts';
import type { Discovery } from './llm/create-models.ts';
import type { Probe } from './llm/discover.ts';
import type { Tool } from './runtime/tool.ts';

export interface ServerOptions {
  readonly config: RootConfig;
  readonly home: HomePaths;
  readonly installKey: InstallKey;
  /** Of the program, as `/health` tells it. */
  readonly version: string;
  /** Files that the configuration was read from. */
  readonly configFiles: readonly string[];
  /** Where keys of model providers are looked for. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The token made at first start, scope `*`. */
  readonly generatedToken?: { readonly id: string; readonly secret: string } | undefined;
  readonly log: Log;
  readonly logger: Pick<Logger, 'setLevel' | 'modules'>;
  readonly redactor: Pick<Redactor, 'redact' | 'hide' | 'add'>;
  /** Ends the process when its event loop is held for thirty seconds. Not for tests, whose clocks stand still. */
  readonly watchdog?: boolean;
  /** True when something outside starts the daemon again after its end. */
  readonly supervised: boolean;
  /** Reads and validates the configuration as it is on disk, before a restart. */
  readonly checkConfig: () => Promise<void>;
  /** Ends this server and starts another one in its place; returns at once. */
  readonly restart: () => void;
  /** What tests put in the place of the world. */
  readonly overrides?: {
    readonly clock?: Clock;
    /** Looks at local model servers; null: does not. */
    readonly probe?: Probe | null;
    /** Comes between the parts and the database: for suites that let a process die at a write. */
    readonly db?: (db: Db) => Db;
    /** The module of the storage threads. */
    readonly storageWorker?: URL;
    readonly freeSpace?: (folder: string) => Promise<FreeSpace>;
    readonly badResults?: 'throw' | 'log';
    /** Beside the built-in ones. */
    readonly tools?: readonly Tool[];
    /** In place of the agents and their workspaces, for suites that test the protocol. */
    readonly mcpOffer?: McpOffer;
    /** Where archives of repositories come from. */
    readonly archives?: Pick<Egress, 'request'>;
    /** Names and addresses of the test's own servers. */
    readonly egress?: Pick<EgressOptions, 'resolve' | 'allowAddresses'>;
  };
}

/** A running server. Disposing of it ends everything in reverse order of construction. */
export interface ServerHandle extends AsyncDisposable {
  /** Where it listens; null when `gateway.enabled` is false. */
  readonly address: string | null;
  /** What was found to call models with. */
  readonly discovery: Discovery;
  /** Things that the person at the terminal should know. */
  readonly warnings: readonly string[];
  readonly bus: EventBus;
  /** Stops taking work and waits for what runs, up to `gateway.drainTimeoutMs`; then aborts it. */
  drain(): Promise<void>;
}
