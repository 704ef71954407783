import type { ScriptCalls } from '../features/delegation/orchestrate/api.ts';
import { createGateway, type GatewayDeps } from '../gateway/app.ts';
import { createControlSocket } from '../gateway/control-socket.ts';
import { createCapabilitySocket } from '../gateway/rpc/capability-socket.ts';
import { createDispatch } from '../gateway/rpc/dispatch.ts';
import { loadTransport } from '../llm/wire/upstream.ts';
import { defaultAgentOf, primaryModel } from '../features/conversations/turns/preparation/resolve-target.ts';
import type { ModelWork } from '../features/access/budgets/api.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { EmbedTexts } from '../gateway/routes/v1-embeddings.ts';
import type { Embedder } from '../llm/embeddings.ts';
import type { Assembly } from './assembly.ts';
import { requireDiskSpace } from './disk-guard.ts';
import type { Foundation } from './foundation.ts';
import { createHealth } from './health.ts';

/** What the gateway uses of the features. */
type Used =
  | 'handlers'
  | 'tokens'
  | 'requestLimits'
  | 'turns'
  | 'media'
  | 'responses'
  | 'receipts'
  | 'webhooks'
  | 'authorization'
  | 'events'
  | 'sessions'
  | 'models'
  | 'agents'
  | 'documents'
  | 'multimodal';

export interface ListenersWiring extends Pick<GatewayDeps, Used> {
  readonly foundation: Omit<Foundation, 'assembly'>;
  readonly work: Pick<ModelWork, 'embed'>;
  readonly embedder: Embedder | undefined;
  readonly scriptCalls: ScriptCalls;
}

/** Wires all listeners of the daemon: the gateway, the socket of its owner, the socket of scripts. */
export function wireListeners(
  { building, options, live, db, bus, clock }: Assembly,
  { foundation, work, embedder, scriptCalls, ...deps }: ListenersWiring,
) {
  const { home, log, version, overrides = {} } = options;
  const { lifetime, metrics, traces, load } = foundation;
  const { models, turns, agents } = deps;
  const guarded = requireDiskSpace(deps.handlers, foundation.disk.assertCanWrite);
  const handlers = traces?.handlers(guarded) ?? guarded;
  const badResults = overrides.badResults ?? 'log';
  let state: 'starting' | 'running' | 'draining' = 'starting';
  const gatewayConfig = live((config) => config.gateway);
  /** The default agent of a caller, unless it is suspended or gone. */
  const payerOf = (call: CallContext): string => agents.usable(defaultAgentOf(agents, call.identity), call).id;
  const gateway = building.use(
    createGateway({
      ...deps,
      handlers,
      bus,
      clock,
      config: gatewayConfig,
      version,
      homeDir: home.dir,
      mcpOffer: overrides.mcpOffer,
      badResults,
      primaryModel: (agent) => primaryModel(agent, models),
      embed: embedder === undefined ? undefined : embedFor(payerOf, work),
      embeddingModel: embedder,
      payerOf,
      health: createHealth({
        version,
        clock,
        models,
        state: () => state,
        storage: foundation.storageStatus,
        isShared: options.node !== undefined,
        leaseFault: foundation.nodes.fault,
        overload: load.overload,
        lacking: foundation.disk.lacking,
        isReplaced: foundation.build.isReplaced,
        programFault: foundation.build.fault,
        isClockDoubted: () => foundation.doubt() !== undefined,
        controlPlaneOnly: lifetime.controlPlaneOnly,
      }),
      meter: metrics.transports,
      metrics: metrics.render,
      tracer: traces?.transports,
      overload: foundation.refusal,
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
      const address = gatewayConfig.current.enabled ? (await gateway.listen()).address : null;
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

/** Embeddings of `/v1` count against the default agent of their caller. */
function embedFor(payerOf: GatewayDeps['payerOf'], work: Pick<ModelWork, 'embed'>): EmbedTexts {
  return async (texts, call, dimensions) =>
    work.embed({ agentId: payerOf(call), principalId: call.identity.principalId, texts, signal: call.signal, dimensions });
}
