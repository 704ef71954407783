import type { Clock } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Configuration } from '../../../kernel/config/configuration.ts';
import type { DbStatus } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Logger } from '../../../kernel/logger.ts';

type SystemMethods = HandlersOf<'system.ping' | 'rpc.discover' | 'gateway.status' | 'gateway.restart' | 'daemon.logs' | 'daemon.setLogLevel'>;
type Status = Awaited<ReturnType<SystemMethods['gateway.status']>>;
type Discovered = Awaited<ReturnType<SystemMethods['rpc.discover']>>;

export interface SystemDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly logger: Pick<Logger, 'setLevel' | 'modules' | 'recent'>;
  readonly version: string;
  readonly configFiles: readonly string[];
  readonly configuration: Pick<Configuration<unknown>, 'restartNeeded' | 'fault'>;
  readonly sections: readonly string[];
  /** True when a supervisor restarts the daemon after it exits. */
  readonly supervised: boolean;
  /** Builds the OpenRPC document; called once. */
  readonly openRpc: () => Promise<Discovered>;
  readonly address: () => string | null;
  readonly connections: () => { readonly http: number; readonly websocket: number };
  readonly turns: () => { readonly running: number; readonly queued: number };
  readonly storage: () => Promise<DbStatus>;
  /** Bytes that may still be written on the disk of the data; undefined where it does not say. */
  readonly freeBytes: () => Promise<number | undefined>;
  readonly jail: () => NonNullable<Status['jail']>;
  readonly retention: () => Promise<NonNullable<Status['retention']>>;
  /** The daemons that share the database; undefined when this one has it alone. */
  readonly nodes: () => Promise<NonNullable<Status['nodes']> | undefined>;
  /** Whether another build of the program was installed meanwhile. */
  readonly isReplaced: () => boolean;
  /** Reads and validates the configuration on disk; fails with an error whose text names every problem. */
  readonly checkConfig: () => Promise<void>;
  /** Drains and restarts; returns at once. */
  readonly restart: () => void;
  /** Records who changed what, before it takes effect. */
  readonly audit: (
    call: CallContext,
    what: { readonly actionType: string; readonly target?: string; readonly metadata?: Record<string, string> },
  ) => Promise<void>;
}

/** Lets the answer leave before the listener closes. */
const restartDelayMs = 200;

/** Methods about the process itself (json-rpc.md §4: system, rpc, gateway, daemon). */
export function createSystem(deps: SystemDeps): { readonly methods: SystemMethods } {
  const { clock, logger } = deps;
  const startedAt = clock.monotonic();
  let document: Discovered | undefined;
  let restartPending = false;

  return {
    methods: {
      async 'system.ping'() {
        return { pong: true, ts: clock.now() };
      },
      async 'rpc.discover'() {
        document ??= await deps.openRpc();
        return document;
      },
      async 'gateway.status'() {
        const [nodes, freeBytes] = await Promise.all([deps.nodes(), deps.freeBytes()]);
        return {
          pid: process.pid,
          version: deps.version,
          uptime: Math.max(0, clock.monotonic() - startedAt) / 1000,
          memoryUsage: process.memoryUsage.rss(),
          nodeVersion: process.version,
          configPaths: [...deps.configFiles],
          sections: [...deps.sections],
          address: deps.address(),
          connections: deps.connections(),
          turns: deps.turns(),
          storage: await deps.storage(),
          ...(freeBytes !== undefined && { disk: { freeBytes } }),
          jail: deps.jail(),
          retention: await deps.retention(),
          ...(nodes !== undefined && { nodes }),
          restartNeeded: [...deps.configuration.restartNeeded],
          ...(deps.configuration.fault !== undefined && { configFault: deps.configuration.fault }),
          ...(deps.isReplaced() && { replaced: true }),
        };
      },
      async 'gateway.restart'(_params, call) {
        try {
          await deps.checkConfig();
        } catch (error) {
          throw new AppError(
            'precondition_failed',
            `Not restarted, the configuration cannot be used: ${error instanceof Error ? error.message : String(error)}`,
            { cause: error },
          );
        }
        await deps.audit(call, { actionType: 'gateway.restart' });
        deps.log.warn({ principalId: call.identity.principalId }, 'Restart requested');
        // The restart loads the files as they are then: a second one would only disconnect clients that are back after the first.
        if (!restartPending)
          clock.after(restartDelayMs, () => {
            restartPending = false;
            deps.restart();
          });
        restartPending = true;
        const { running } = deps.turns();
        return {
          restarting: true,
          systemd: deps.supervised,
          ...(running > 0 && {
            warning: `Waiting for ${running} running ${running === 1 ? 'turn' : 'turns'}; new ones are refused until the daemon is back.`,
          }),
        };
      },
      async 'daemon.logs'(query, call) {
        if (call.identity.agents !== undefined) throw new AppError('denied', 'A token limited to some agents cannot read the log of the daemon');
        return { lines: logger.recent.newest(query), modules: logger.modules() };
      },
      async 'daemon.setLogLevel'({ level, module }, call) {
        if (module !== undefined && !logger.modules().includes(module))
          throw new AppError('not_found', `Unknown module: "${module}". Modules: ${logger.modules().join(', ')}`, { param: 'module' });
        await deps.audit(call, { actionType: 'daemon.setLogLevel', ...(module !== undefined && { target: module }), metadata: { level } });
        logger.setLevel(level, module);
        deps.log.info({ level, target: module, principalId: call.identity.principalId }, 'Log level changed');
        return {
          updated: true,
          level,
          ...(module === undefined ? { scope: 'global' as const } : { scope: 'module' as const, module }),
          persistent: false,
        };
      },
    },
  };
}
