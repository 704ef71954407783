import type { ScriptCalls } from '../features/delegation/orchestrate/api.ts';
import { createGateway, type GatewayDeps } from '../gateway/app.ts';
import { createControlSocket } from '../gateway/control-socket.ts';
import { createCapabilitySocket } from '../gateway/rpc/capability-socket.ts';
import { createDispatch } from '../gateway/rpc/dispatch.ts';
import { loadTransport } from '../llm/wire/upstream.ts';
import type { Ground } from './core.ts';
import type { ServerOptions } from '../server-handle.ts';
import { createHealth } from './health.ts';

/** What of the gateway follows from the options and the ground. */
type Given = 'config' | 'version' | 'homeDir' | 'mcpOffer' | 'badResults' | 'health' | 'meter' | 'metrics' | 'tracer' | 'overload' | 'log';

export interface DoorsDeps extends Omit<GatewayDeps, Given | 'keepAliveMs'> {
  /** Owns what is built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly ground: Ground;
  readonly scriptCalls: ScriptCalls;
  readonly isClockDoubted: () => boolean;
}

/** All ways into the daemon: the gateway, the socket of its owner, the socket of scripts. */
export function createDoors({ building, options, ground, scriptCalls, isClockDoubted, ...deps }: DoorsDeps) {
  const { config, home, log, version, overrides = {} } = options;
  const { lifetime, metrics, traces, load, db } = ground;
  const { bus, clock, handlers, models, turns } = deps;
  const badResults = overrides.badResults ?? 'log';
  let state: 'starting' | 'running' | 'draining' = 'starting';
  const gateway = building.use(
    createGateway({
      ...deps,
      config: config.gateway,
      version,
      homeDir: home.dir,
      mcpOffer: overrides.mcpOffer,
      badResults,
      health: createHealth({
        version,
        clock,
        models,
        state: () => state,
        storage: ground.storage,
        overload: load.overload,
        lacking: ground.disk.lacking,
        isReplaced: ground.build.isReplaced,
        programFault: ground.build.fault,
        isClockDoubted,
        controlPlaneOnly: lifetime.controlPlaneOnly,
      }),
      meter: metrics.door,
      metrics: metrics.render,
      tracer: traces?.door,
      overload: ground.refusal,
      log: log.module('gateway'),
    }),
  );
  metrics.attach({
    turns: turns.counts,
    connections: gateway.connections,
    eventStreams: gateway.eventStreams,
    storage: () => db.status(),
    loopDelayMs: load.loopDelayMs,
  });
  return {
    connections: gateway.connections,
    /** Gives the address of the listener; null when there is none. */
    async open(): Promise<string | null> {
      const address = config.gateway.enabled ? (await gateway.listen()).address : null;
      // Loaded while nobody waits for it, or the first turn would; it holds the event loop, so not in the way of the first answer.
      building.defer(
        clock.after(100, () => void loadTransport().catch((error: unknown) => log.warn({ err: error }, 'The HTTP client could not be loaded yet'))),
      );
      building.use(
        await createControlSocket({
          file: home.socketFile,
          backupsDir: home.backupsDir,
          info: () => ({ address, pid: process.pid, version }),
          backup: (file, onProgress) => db.backup(file, onProgress),
          serve: gateway.serveOwner,
          clock,
          log: log.module('control'),
        }),
      );
      building.use(
        await createCapabilitySocket({
          file: home.capabilitySocketFile,
          calls: scriptCalls,
          dispatch: createDispatch({ handlers, bus, clock, log: log.module('rpc'), badResults }),
          clock,
          log: log.module('capability'),
        }),
      );
      return address;
    },
    /** The start is over. */
    ready(): void {
      state = 'running';
    },
    drain(timeoutMs: number): Promise<void> {
      state = 'draining';
      return gateway.drain(timeoutMs);
    },
  };
}
