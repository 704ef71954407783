import { styleText } from 'node:util';
import { configTemplate } from './config-template.ts';
import { exitCodeOf } from './exit-code-of.ts';
import { exitCodes } from './exit-codes.ts';
import { greetingLines, tokenFromFile } from './greeting.ts';
import { isSecretName } from './kernel/config/secrets.ts';
import type { LoadedConfig } from './kernel/config/load.ts';
import { systemClock } from './kernel/clock.ts';
import { openHome } from './kernel/home.ts';
import { createLogger } from './kernel/logger.ts';
import { createRedactor } from './kernel/redact.ts';
import { asConfigError, loadRootConfig } from './load-root-config.ts';
import type { RootConfig } from './config-schema.ts';
import { createServer } from './server.ts';
import type { ServerHandle } from './server-handle.ts';
import { parseArguments, usage } from './start-arguments.ts';
import { startWarnings } from './start-warnings.ts';
import { version } from './version.ts';

/** npm passes a signal on that its child has had from the terminal already; both come within this time. */
const echoMs = 150;

/** One life of the daemon in this process: resolves when it is started (or has failed to), and ends the process itself. */
export async function runDaemon(process: NodeJS.Process): Promise<void> {
  const { env } = process;
  const args = parseArguments(process.argv.slice(2), env, process.cwd());
  if (args.kind === 'help' || args.kind === 'version') {
    process.stdout.write(args.kind === 'help' ? usage : `${version}\n`);
    return;
  }
  // Who reads the first lines only (`| head`) is no reason to stop.
  process.stdout.on('error', () => {});
  if (args.kind === 'wrong') {
    process.stderr.write(`gatehouse: ${args.message}\n`);
    process.exitCode = exitCodes.usage.code;
    return;
  }

  const redactor = createRedactor(Object.entries(env).flatMap(([name, value]) => (isSecretName(name) && value !== undefined ? [value] : [])));
  const logger = createLogger({ level: 'info', redact: redactor.redact });
  const { log } = logger;
  let server: ServerHandle | undefined;
  let loaded: LoadedConfig<RootConfig> | undefined;

  function end(code: number): never {
    logger.flush();
    process.exit(code);
  }

  process.on('uncaughtException', (error, origin) => {
    log.fatal({ err: error, origin }, 'Uncaught error: the daemon ends');
    server?.bus.emit('system:error', { source: origin, message: 'Uncaught error: the daemon ends', timestamp: systemClock.now() });
    end(exitCodes.internal.code);
  });

  /** Whatever is being started, ended or changed now; signals and restarts queue behind it. */
  let work: Promise<void> = Promise.resolve();
  let stopping: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping !== undefined) {
        const echo = env['npm_lifecycle_event'] !== undefined && signal === stopping.signal && systemClock.monotonic() - stopping.atMs < echoMs;
        if (!echo) end(signal === 'SIGINT' ? exitCodes.interrupted.code : exitCodes.terminated.code);
        return;
      }
      stopping = { signal, atMs: systemClock.monotonic() };
      log.info({ signal }, 'Stopping: running turns are waited for, a second signal ends at once');
      work = work.then(stop);
    });
  }

  async function stop(): Promise<void> {
    try {
      await close();
    } catch (error) {
      log.fatal({ err: error }, 'The stop failed');
      end(exitCodes.internal.code);
    }
    log.info({}, 'Stopped');
    end(exitCodes.ok.code);
  }

  async function close(): Promise<void> {
    const ending = server;
    server = undefined;
    await ending?.drain();
    await ending?.[Symbol.asyncDispose]();
  }

  try {
    const home = openHome(args.home, { template: configTemplate });
    const { paths } = home;
    const notes = [...home.warnings];

    const readConfig = (): LoadedConfig<RootConfig> => {
      const file = home.readConfig();
      const read = loadRootConfig({ path: paths.configFile, text: file.text }, env, args);
      redactor.add(read.secrets);
      const closed = read.literalSecrets ? file.protect() : undefined;
      if (closed !== undefined) notes.push(closed);
      return read;
    };

    const boot = async (source: LoadedConfig<RootConfig>): Promise<ServerHandle> => {
      const { config } = source;
      for (const [name, level] of Object.entries(config.logging.modules)) logger.setModuleLevel(name, level);
      logger.setLevel(config.logging.level);
      // Without any other token nobody could come in.
      const token = config.gateway.tokens.length === 0 ? home.ensureToken() : home.readToken();
      if (token !== undefined) redactor.add([token]);
      try {
        return await createServer({
          config,
          home: paths,
          installKey: home.installKey,
          version,
          configFiles: source.files,
          env,
          generatedToken: token === undefined ? undefined : { id: 'owner', secret: token },
          log,
          logger,
          redactor,
          supervised: env['INVOCATION_ID'] !== undefined || env['NOTIFY_SOCKET'] !== undefined,
          checkConfig: async () => void readConfig(),
          restart: () => (work = work.then(restart)),
        });
      } catch (error) {
        throw asConfigError(error, source) ?? error;
      }
    };

    /** Back to what ran before when the new configuration passes the check and yet cannot be started. */
    const restart = async (): Promise<void> => {
      if (stopping !== undefined || loaded === undefined) return;
      let next: LoadedConfig<RootConfig>;
      try {
        next = readConfig();
      } catch (error) {
        log.error({ err: error }, 'Not restarted: the configuration cannot be used');
        return;
      }
      await close();
      try {
        server = await boot(next);
        loaded = next;
        log.info({ address: server.address }, 'Restarted');
      } catch (error) {
        log.error({ err: error }, 'The new configuration cannot be started: going back to the one before');
        server = await boot(loaded);
      }
    };

    const first = readConfig();
    loaded = first;
    const starting = boot(first);
    // A signal during the start waits for its end.
    work = starting.then((started) => void (server = started), () => {});
    const started = await starting;
    server = started;

    const { config } = first;
    const color = process.stdout.isTTY;
    const paint = (style: 'bold' | 'yellow') => (text: string) => (color ? styleText(style, text) : text);
    const offline = started.discovery.providers.every((provider) => provider.source === 'built_in');
    const lines = greetingLines(
      {
        version,
        home: paths.dir,
        configFile: paths.configFile,
        firstStart: home.firstStart,
        discovery: started.discovery,
        agentId: config.routing.defaultAgentId,
        address: started.address,
        socketFile: paths.socketFile,
        tokenExpression: home.readToken() !== undefined ? tokenFromFile(paths.tokenFile) : env['GATEHOUSE_TOKEN'] ? '$GATEHOUSE_TOKEN' : undefined,
        warnings: [...notes, ...started.warnings, ...startWarnings(config, { offline, configFile: paths.configFile, logModules: logger.modules() })],
      },
      { bold: paint('bold'), yellow: paint('yellow') },
    );
    logger.flush();
    process.stdout.write(`${lines.join('\n')}\n`);
  } catch (error) {
    const code = exitCodeOf(error);
    logger.flush();
    const text = error instanceof Error ? (code === exitCodes.internal.code ? (error.stack ?? error.message) : error.message) : String(error);
    process.stderr.write(`${redactor.redact(text).split('\n').map((line) => `gatehouse: ${line}`).join('\n')}\n`);
    end(code);
  }
}
