import { configTemplate } from './config-template.ts';
import { FileConfiguration } from './configuration.ts';
import type { RootConfig } from '../config-schema.ts';
import { dashboardDir } from '../gateway/routes/dashboard-files.ts';
import { placeEditorSchema } from './editor-schema.ts';
import { type Greeting, setupCommand, tokenFromFile } from './greeting.ts';
import { systemClock } from '../kernel/clock.ts';
import { ConfigError } from '../kernel/config/config-error.ts';
import type { LoadedConfig } from '../kernel/config/load.ts';
import { isSupervised } from '../kernel/lifecycle/notify.ts';
import type { Environment } from '../kernel/config/references.ts';
import { type Home, openHome, openSharedFolders } from '../kernel/home.ts';
import type { Logger } from '../kernel/logger.ts';
import { createSeal } from '../kernel/seal.ts';
import type { Redactor } from '../kernel/redact.ts';
import { readStoredSecrets } from './stored-secrets.ts';
import { listSecrets } from '../features/operations/secrets/store.ts';
import { SecretVault } from '../features/operations/secrets/vault/vault.ts';
import { masterKeyOf } from './master-key.ts';
import { createServer } from '../server.ts';
import type { ServerHandle } from '../server-handle.ts';
import { defaultHome, type StartArguments } from './start-arguments.ts';
import type { ActiveNode } from './standby/become-active.ts';
import { asConfigError } from '../wiring/config-fault.ts';
import { ConfigReplacedError } from '../wiring/settings.ts';
import { startWarnings } from '../wiring/start-warnings.ts';
import { version } from '../version.ts';

type Loaded = LoadedConfig<RootConfig>;

/** Id of the token that is created at first start. */
const generatedTokenId = 'owner';

export interface ServerLifeOptions {
  readonly args: Extract<StartArguments, { kind: 'start' }>;
  readonly env: Environment;
  readonly logger: Logger;
  readonly redactor: Redactor;
  /** False where a debugger may block the event loop. */
  readonly watchdog: boolean;
  /** Called when no server is left and none can be started. */
  readonly onDeath: () => void;
  /** Called when another daemon is the active one of the database, and this one waits. */
  readonly onStandby: (address: string | null) => void;
  /** Called when another daemon has taken over from this one, which must end. */
  readonly onLost: () => void;
}

/** What stays the same through the restarts of the server. */
interface Installation {
  readonly home: Home;
  readonly configuration: FileConfiguration;
  readonly secrets: SecretVault;
}

interface Running {
  readonly server: ServerHandle;
  readonly loaded: Loaded;
  /** The place among daemons that share the database; undefined when there are no others. */
  readonly node: ActiveNode | undefined;
}

/** The server of this process through its restarts: one at a time, each with the configuration on disk at that time. */
export class ServerLife {
  readonly #options: ServerLifeOptions;
  /** Start, restarts and stop, one after the other. */
  #work: Promise<unknown> = Promise.resolve();
  readonly #stop = new AbortController();
  #running: Running | undefined;

  constructor(options: ServerLifeOptions) {
    this.#options = options;
  }

  /**
   * Fails with an error that `exitCodeOf` knows: an unusable home, configuration, storage or address. Resolves with undefined when it was
   * stopped while another daemon was the active one.
   */
  start(): Promise<Greeting | undefined> {
    const starting = this.#start();
    this.#work = starting.catch(() => undefined);
    return starting;
  }

  /** Waits for running turns up to the drain time, then stops everything in order. */
  stop(): Promise<void> {
    this.#stop.abort();
    const stopping = this.#work.then(() => this.#close());
    this.#work = stopping.catch(() => undefined);
    return stopping;
  }

  announceFault(source: string): void {
    this.#running?.server.bus.emit('system:error', { source, message: 'Uncaught error: stopping the daemon', timestamp: systemClock.now() });
  }

  async #start(): Promise<Greeting | undefined> {
    const { args, env, logger } = this.#options;
    const home = openHome(args.home, { template: configTemplate, installKey: masterKeyOf(env) });
    const secrets = new SecretVault({ file: home.paths.secretsFile, key: home.installKey, redactor: this.#options.redactor });
    const { running, notes } = await this.#bootUsable({ home, configuration: this.#configure(home, secrets), secrets });
    this.#running = running;
    if (running === undefined) return undefined;

    void placeEditorSchema(home.paths).catch((error: unknown) => logger.log.warn({ err: error }, 'Failed to write the schema for editors'));
    const { server } = running;
    const { config } = running.loaded;
    const { paths } = home;
    const token = home.readToken();
    const offline = server.discovery.providers.every((provider) => provider.source === 'built_in');
    return {
      version,
      home: paths.dir,
      firstStart: home.firstStart,
      discovery: server.discovery,
      setup: offline ? setupCommand(paths.dir, defaultHome(env), env) : undefined,
      agentId: config.routing.defaultAgentId,
      address: server.address,
      socketFile: paths.socketFile,
      tokenExpression: token !== undefined ? tokenFromFile(paths.tokenFile) : env['GATEHOUSE_TOKEN'] ? '$GATEHOUSE_TOKEN' : undefined,
      dashboard: dashboardDir(config.gateway.web, paths.dir) === undefined ? undefined : { token },
      warnings: [...home.warnings, ...notes, ...server.warnings, ...startWarnings(config, { logModules: logger.modules() })],
    };
  }

  #configure(home: Home, secrets: SecretVault): FileConfiguration {
    const { args, env, redactor, logger } = this.#options;
    const configuration = new FileConfiguration({
      file: home.paths.configFile,
      lastGood: { file: home.paths.lastGoodFile, seal: createSeal(home.installKey.derive('config')) },
      read: home.readConfig,
      env,
      flags: args,
      redactor,
      log: logger.log.module('config'),
    });
    configuration.useSecrets((name) => secrets.get(name));
    return configuration;
  }

  /** Starts with the file, or with the last configuration that could be used when the file cannot. */
  async #bootUsable(installation: Installation): Promise<{ readonly running: Running | undefined; readonly notes: readonly string[] }> {
    const { configuration } = installation;
    try {
      const { loaded, notes } = await this.#loadFirst(installation);
      return { running: await this.#boot(installation, loaded), notes };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const good = configuration.loadLastGood(error);
      if (good === undefined) throw error;
      const running = await this.#boot(installation, good);
      // A newer version of the database may have replaced the file.
      if (running?.loaded.text !== good.text) return { running, notes: [] };
      configuration.noteFault(error);
      return {
        running,
        notes: [`config.yaml cannot be used, so the last configuration that could is in force. Repair config.yaml and restart: ${error.message}`],
      };
    }
  }

  /** The copy may lack a secret that the database has. */
  async #loadFirst(installation: Installation): Promise<ReturnType<FileConfiguration['load']>> {
    const { home, configuration, secrets } = installation;
    try {
      return configuration.load();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const text = configuration.readText();
      const rows = await readStoredSecrets(home.paths, { text, env: this.#options.env, secrets: (name) => secrets.get(name) });
      if (rows !== undefined && secrets.learn(rows)) return this.#loadFirst(installation);
      const fault = secrets.fault();
      throw fault === undefined ? error : new ConfigError([...error.problems, { source: home.paths.secretsFile, message: fault }]);
    }
  }

  async #boot(installation: Installation, given: Loaded): Promise<Running | undefined> {
    const { home, configuration } = installation;
    let node: ActiveNode | undefined;
    let loaded = given;
    try {
      if (loaded.config.storage.driver === 'postgres') {
        // A folder that is not there must be noticed now, and not when a standby takes over.
        if (loaded.config.storage.sharedPath !== undefined) openSharedFolders(home.paths, loaded.config.storage.sharedPath);
        // A standby writes a log, too.
        this.#options.logger.reset(loaded.config.logging);
        node = await this.#becomeActive(home, loaded);
        if (node === undefined) return undefined;
        loaded = await this.#withSharedSecrets(installation, loaded, node);
      }
      for (;;) {
        try {
          const server = await this.#createServer(installation, loaded, node);
          configuration.keepGood(loaded);
          return { server, loaded, node };
        } catch (error) {
          if (!(error instanceof ConfigReplacedError)) throw error;
          // Nothing replaces it twice: the next one finds the file as it should be.
          ({ loaded } = configuration.load());
        }
      }
    } catch (error) {
      await node?.[Symbol.asyncDispose]();
      throw asConfigError(error, loaded) ?? error;
    }
  }

  /** While this daemon waited, the active one may have changed secrets: all keys get them, also those that need a restart. */
  async #withSharedSecrets({ configuration, secrets }: Installation, before: Loaded, { db }: ActiveNode): Promise<Loaded> {
    if (secrets.adopt(await db.read(listSecrets, {})).length === 0) return before;
    try {
      return configuration.again(before);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#options.logger.log.error(
        { err: error },
        'The configuration is not valid with the secrets of the database: starting with those of the sealed copy',
      );
      return before;
    }
  }

  async #createServer(installation: Installation, loaded: Loaded, node: ActiveNode | undefined): Promise<ServerHandle> {
    const { home, configuration, secrets } = installation;
    const { env, logger, redactor } = this.#options;
    const { config } = loaded;
    const { sharedPath } = config.storage;
    configuration.begin(loaded);
    logger.reset(config.logging);
    // Without any other token nobody could log in.
    const secret = config.gateway.tokens.length === 0 ? home.ensureToken() : home.readToken();
    if (secret !== undefined) redactor.add([secret]);
    return createServer({
      config,
      configuration,
      node,
      home: sharedPath === undefined ? home.paths : openSharedFolders(home.paths, sharedPath),
      installKey: home.installKey,
      secrets,
      version,
      configFiles: loaded.files,
      env,
      generatedToken: secret === undefined ? undefined : { id: generatedTokenId, secret },
      log: logger.log,
      logger,
      redactor,
      watchdog: this.#options.watchdog,
      supervised: isSupervised(env),
      checkConfig: async () => void configuration.check(configuration.readText()),
      restart: () => this.#restart(installation),
    });
  }

  async #becomeActive(home: Home, { config }: Loaded): Promise<ActiveNode | undefined> {
    const { logger, watchdog, onStandby, onLost } = this.#options;
    // Most daemons never load it.
    const { becomeActive } = await import('./standby/become-active.ts');
    return becomeActive({
      config,
      home: home.paths,
      installKey: home.installKey,
      version,
      clock: systemClock,
      log: logger.log.module('nodes'),
      watchdog,
      signal: this.#stop.signal,
      onStandby,
      onLost,
    });
  }

  #restart(installation: Installation): void {
    const { configuration } = installation;
    const { log } = this.#options.logger;
    this.#work = this.#work.then(async () => {
      const before = this.#running;
      if (this.#stop.signal.aborted || before === undefined) return;
      let loaded: Loaded;
      try {
        ({ loaded } = configuration.load());
      } catch (error) {
        log.error({ err: error }, 'Not restarted: the configuration cannot be used');
        return;
      }
      try {
        await this.#close();
        this.#running = await this.#bootOr(installation, loaded, before.loaded);
        if (this.#running !== undefined) log.info({ address: this.#running.server.address }, 'Restarted');
      } catch (error) {
        log.fatal({ err: error }, 'The restart failed');
        this.#options.onDeath();
      }
    });
  }

  /** A configuration that passed every check may still fail at a port: then the previous one is better than nothing. */
  async #bootOr(installation: Installation, loaded: Loaded, before: Loaded): Promise<Running | undefined> {
    const { configuration } = installation;
    try {
      return await this.#boot(installation, loaded);
    } catch (error) {
      const fault = error instanceof Error ? error : new Error(String(error));
      this.#options.logger.log.error({ err: fault }, 'Failed to start with the new configuration; continuing with the previous one');
      const running = await this.#boot(installation, configuration.loadLastGood(fault) ?? before);
      configuration.noteFault(fault);
      return running;
    }
  }

  async #close(): Promise<void> {
    const { server, node } = this.#running ?? {};
    await server?.drain();
    this.#running = undefined;
    await server?.[Symbol.asyncDispose]();
    await node?.[Symbol.asyncDispose]();
  }
}
