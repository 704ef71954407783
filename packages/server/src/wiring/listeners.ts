import type { ScriptCalls } from '../features/delegation/orchestrate/api.ts';
import { createGateway, type GatewayDeps } from '../gateway/app.ts';
import { createControlSocket } from '../gateway/control-socket.ts';
import { createCapabilitySocket } from '../gateway/rpc/capability-socket.ts';
import { createDispatch } from '../gateway/rpc/dispatch.ts';
import { loadTransport } from '../llm/wire/upstream.ts';
import type { Core } from './core.ts';
import type { ServerOptions } from '../server-handle.ts';
import { createHealth } from './health.ts';

/** Options of the gateway that follow from the server options and the core. */
type Given = 'config' | 'version' | 'homeDir' | 'mcpOffer' | 'badResults' | 'health' | 'meter' | 'metrics' | 'tracer' | 'overload' | 'log';

export interface ListenersDeps extends Omit<GatewayDeps, Given | 'keepAliveMs'> {
  /** Owns everything built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly core: Core;
  readonly scriptCalls: ScriptCalls;
  readonly isClockDoubted: () => boolean;
}

/** Creates all listeners of the daemon: the gateway, the socket of its owner, the socket of scripts. */
export function createListeners({ building, options, core, scriptCalls, isClockDoubted, ...deps }: ListenersDeps) {
  const { config, home, log, version, overrides = {} } = options;
  const { lifetime, metrics, traces, load, db } = core;
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
        storage: core.storage,
        overload: load.overload,
        lacking: core.disk.lacking,
        isReplaced: core.build.isReplaced,
        programFault: core.build.fault,
        isClockDoubted,
        controlPlaneOnly: lifetime.controlPlaneOnly,
      }),
      meter: metrics.transports,
      metrics: metrics.render,
      tracer: traces?.transports,
      overload: core.refusal,
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
    /** Returns the address of the listener; null when there is none. */
    async open(): Promise<string | null> {
      const address = config.gateway.enabled ? (await gateway.listen()).address : null;
      // Loaded while idle, or the first turn would wait for it; it blocks the event loop, so not before the first response.
      building.defer(
        clock.after(100, () => void loadTransport().catch((error: unknown) => log.warn({ err: error }, 'Failed to preload the HTTP client'))),
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
    /** Called when startup is over. */
    ready(): void {
      state = 'running';
    },
    drain(timeoutMs: number): Promise<void> {
      state = 'draining';
      return gateway.drain(timeoutMs);
    },
  };
}
