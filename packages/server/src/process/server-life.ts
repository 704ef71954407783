import { configTemplate } from './config-template.ts';
import type { RootConfig } from '../config-schema.ts';
import { dashboardDir } from '../gateway/routes/dashboard-files.ts';
import { type Greeting, tokenFromFile } from './greeting.ts';
import { systemClock } from '../kernel/clock.ts';
import type { LoadedConfig } from '../kernel/config/load.ts';
import { isSupervised } from '../kernel/lifecycle/notify.ts';
import type { Environment } from '../kernel/config/references.ts';
import { type Home, openHome, openSharedFolders } from '../kernel/home.ts';
import type { Logger } from '../kernel/logger.ts';
import type { Redactor } from '../kernel/redact.ts';
import { masterKeyOf } from './master-key.ts';
import { asConfigError, loadRootConfig } from './load-root-config.ts';
import { createServer } from '../server.ts';
import type { ServerHandle } from '../server-handle.ts';
import type { StartArguments } from './start-arguments.ts';
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
}

/** The server of this process through its restarts: one at a time, each with the configuration on disk at that time. */
export class ServerLife {
  readonly #options: ServerLifeOptions;
  /** Start, restarts and stop, one after the other. */
  #work: Promise<unknown> = Promise.resolve();
  #stopping = false;
  #running: { readonly server: ServerHandle; readonly loaded: Loaded } | undefined;

  constructor(options: ServerLifeOptions) {
    this.#options = options;
  }

  /** Fails with an error that `exitCodeOf` knows: an unusable home, configuration, storage or address. */
  start(): Promise<Greeting> {
    const starting = this.#start();
    this.#work = starting.catch(() => undefined);
    return starting;
  }

  /** Waits for running turns up to the drain time, then stops everything in order. */
  stop(): Promise<void> {
    this.#stopping = true;
    const stopping = this.#work.then(() => this.#close());
    this.#work = stopping.catch(() => undefined);
    return stopping;
  }

  announceFault(source: string): void {
    this.#running?.server.bus.emit('system:error', { source, message: 'Uncaught error: stopping the daemon', timestamp: systemClock.now() });
  }

  async #start(): Promise<Greeting> {
    const { args, env, logger } = this.#options;
    const home = openHome(args.home, { template: configTemplate, installKey: masterKeyOf(env) });
    const { loaded, notes } = this.#load(home);
    const server = await this.#boot(home, loaded);
    this.#running = { server, loaded };

    const { config } = loaded;
    const { paths } = home;
    const token = home.readToken();
    const offline = server.discovery.providers.every((provider) => provider.source === 'built_in');
    return {
      version,
      home: paths.dir,
      firstStart: home.firstStart,
      discovery: server.discovery,
      agentId: config.routing.defaultAgentId,
      address: server.address,
      socketFile: paths.socketFile,
      tokenExpression: token !== undefined ? tokenFromFile(paths.tokenFile) : env['GATEHOUSE_TOKEN'] ? '$GATEHOUSE_TOKEN' : undefined,
      dashboard: dashboardDir(config.gateway.web, paths.dir) === undefined ? undefined : { token },
      warnings: [
        ...home.warnings,
        ...notes,
        ...server.warnings,
        ...startWarnings(config, { offline, configFile: paths.configFile, logModules: logger.modules() }),
      ],
    };
  }

  #load(home: Home): { readonly loaded: Loaded; readonly notes: readonly string[] } {
    const { args, env, redactor } = this.#options;
    const file = home.readConfig();
    const loaded = loadRootConfig({ path: home.paths.configFile, text: file.text }, env, args);
    redactor.add(loaded.secrets);
    const closed = loaded.literalSecrets ? file.protect() : undefined;
    return { loaded, notes: closed === undefined ? [] : [closed] };
  }

  async #boot(home: Home, loaded: Loaded): Promise<ServerHandle> {
    const { env, logger, redactor } = this.#options;
    const { config } = loaded;
    const { sharedPath } = config.storage;
    logger.reset(config.logging);
    // Without any other token nobody could log in.
    const secret = config.gateway.tokens.length === 0 ? home.ensureToken() : home.readToken();
    if (secret !== undefined) redactor.add([secret]);
    try {
      return await createServer({
        config,
        home: sharedPath === undefined ? home.paths : openSharedFolders(home.paths, sharedPath),
        installKey: home.installKey,
        version,
        configFiles: loaded.files,
        env,
        generatedToken: secret === undefined ? undefined : generatedToken(config, secret),
        log: logger.log,
        logger,
        redactor,
        watchdog: this.#options.watchdog,
        supervised: isSupervised(env),
        checkConfig: async () => void this.#load(home),
        restart: () => this.#restart(home),
      });
    } catch (error) {
      throw asConfigError(error, loaded) ?? error;
    }
  }

  #restart(home: Home): void {
    const { log } = this.#options.logger;
    this.#work = this.#work.then(async () => {
      const before = this.#running;
      if (this.#stopping || before === undefined) return;
      let loaded: Loaded;
      try {
        ({ loaded } = this.#load(home));
      } catch (error) {
        log.error({ err: error }, 'Not restarted: the configuration cannot be used');
        return;
      }
      try {
        await this.#close();
        this.#running = { loaded, server: await this.#bootOr(home, loaded, before.loaded) };
        log.info({ address: this.#running.server.address }, 'Restarted');
      } catch (error) {
        log.fatal({ err: error }, 'The restart failed');
        this.#options.onDeath();
      }
    });
  }

  /** A configuration that passed every check may still fail at a port or a model: then the previous one is better than nothing. */
  async #bootOr(home: Home, loaded: Loaded, before: Loaded): Promise<ServerHandle> {
    try {
      return await this.#boot(home, loaded);
    } catch (error) {
      this.#options.logger.log.error({ err: error }, 'Failed to start with the new configuration; continuing with the previous one');
      return this.#boot(home, before);
    }
  }

  async #close(): Promise<void> {
    const ending = this.#running?.server;
    await ending?.drain();
    this.#running = undefined;
    await ending?.[Symbol.asyncDispose]();
  }
}

/** Returns no token when the configuration has the same secret; uses another id when the configuration has taken the usual one. */
function generatedToken({ gateway: { tokens } }: RootConfig, secret: string): { readonly id: string; readonly secret: string } | undefined {
  if (tokens.some((token) => token.secret === secret)) return undefined;
  return { id: tokens.some((token) => token.id === generatedTokenId) ? 'token-file' : generatedTokenId, secret };
}
