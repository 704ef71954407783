import { createHmac } from 'node:crypto';
import { acceptDelivery } from '../transactions/accept-delivery.ts';
import type { Agent, AgentsApi, ConfigureAgent } from '../features/agents/agents/api.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import { endWork, endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import { createDurable, type DurableDeps } from '../features/unattended/durable/durable.ts';
import { beatPrincipal } from '../features/unattended/heartbeat/beat/beat.ts';
import { createInbox } from '../features/unattended/inbox/inbox.ts';
import { createHeartbeat } from '../features/unattended/heartbeat/heartbeat.ts';
import { conversationRef, parseSessionKey, printSessionKey } from '../features/conversations/sessions/conversation.ts';
import { createWebhooks } from '../features/unattended/webhooks/webhooks.ts';
import type { WorkspaceApi } from '../features/environment/workspace/api.ts';
import type { MemoryLifeApi } from '../features/knowledge/memory/api.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Db } from '../kernel/db/db.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { beginBeat, endBeat, recoverBeats } from '../transactions/heartbeat-work.ts';
import type { Models } from '../llm/models.ts';
import type { FenceLabel } from '../runtime/fence.ts';
import { wireCron } from './cron.ts';
import type { ServerOptions } from '../server-handle.ts';

export interface ScheduleDeps {
  /** Owns everything built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly configure: ConfigureAgent;
  readonly knowsModel: (name: string) => boolean;
  readonly models: Pick<Models, 'onRecovered' | 'watch' | 'resolve' | 'defaultModel'>;
  readonly checklist: WorkspaceApi['checklist'];
  /** Whether a turn runs in a conversation. */
  readonly isBusy: (conversationRef: string) => boolean;
  readonly turns: TurnsApi;
  readonly memory: MemoryLifeApi;
  readonly fence: (text: string, label: FenceLabel) => string;
  /** Returns the current identity of a token; undefined when it is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  /** Called after messages were stored. */
  readonly noticeMessages: () => void;
  /** Ends the waits of a root run for approvals, as denied. */
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
  readonly onClaimEnd: NonNullable<DurableDeps['onClaimEnd']>;
  /** Whether accepted work must wait: nothing new can be stored, or program files are missing. */
  readonly isHeld: () => boolean;
  /** False after repeated crashes: nothing runs on its own then. */
  readonly mayWork: boolean;
}

/** Creates what agents do without a user: durable work, webhooks, cron, heartbeats, and the inbox for their reports. */
export function createSchedule(deps: ScheduleDeps) {
  const { building, options, db, bus, clock, bootId, agents, turns, mayWork } = deps;
  const { log } = options;
  const namedModels = ({ config: { model, fallbackModels, heartbeat, operationModels } }: Agent) => [
    model,
    ...fallbackModels,
    ...(heartbeat.model === undefined ? [] : [heartbeat.model]),
    ...Object.values(operationModels).map((operation) => operation.model),
  ];
  const modelsBefore = new Map(agents.list().map((agent) => [agent.id, namedModels(agent).join(' ')]));
  /** Settings with which models are reached; keys come from the environment as well. */
  const modelAccess = [options.config.providers, Object.entries(options.env).filter(([name]) => /_(?:KEY|TOKEN)$/.test(name))];
  const durable = building.use(
    createDurable({
      db,
      clock,
      log: log.module('durable'),
      bootId,
      endWork,
      maxWaitMs: options.config.durable.maxWaitMs,
      watchModel: deps.models.watch,
      isSuspended: (agentId) => agents.find(agentId)?.suspended === true,
      isHeld: deps.isHeld,
      onClaimEnd: deps.onClaimEnd,
    }),
  );
  const inbox = createInbox({ db, bus, clock });
  const heartbeatKey = options.installKey.derive('heartbeat');
  const beatKey = { userId: 'heartbeat', channelId: 'gateway' };
  const heartbeat = building.use(
    createHeartbeat({
      db,
      bus,
      clock,
      log: log.module('heartbeat'),
      config: options.config.scheduler.heartbeat,
      agents,
      configure: deps.configure,
      knowsModel: deps.knowsModel,
      watchModels(agent) {
        for (const name of namedModels(agent)) {
          const model = name === undefined ? deps.models.defaultModel() : deps.models.resolve(name);
          if (model !== undefined) deps.models.watch(`${model.provider}/${model.modelId}`);
        }
      },
      checklist: deps.checklist,
      durable: durable.api,
      turn: turns.durable,
      inbox: inbox.api,
      targetOf: (agentId) => ({
        ref: conversationRef(agentId, beatPrincipal, beatKey),
        sessionKey: printSessionKey(beatKey),
        agentId,
        principalId: beatPrincipal,
      }),
      isBusy: deps.isBusy,
      operations: { begin: beginBeat, end: endBeat, recover: recoverBeats },
      seed: heartbeatKey,
      fingerprintOf: ({ config }) =>
        createHmac('sha256', heartbeatKey)
          .update(JSON.stringify([config, ...modelAccess]))
          .digest('base64url'),
    }),
  );
  const cron = building.use(wireCron({ ...deps, durable: durable.api, heartbeat: heartbeat.api, inbox: inbox.api }));
  const webhooks = building.use(
    createWebhooks({
      db,
      bus,
      clock,
      log: log.module('webhooks'),
      config: options.config.webhooks,
      httpBodyLimitBytes: options.config.gateway.httpBodyLimitBytes,
      agents,
      durable: durable.api,
      heartbeat: heartbeat.api,
      inbox: inbox.api,
      turns,
      acceptDelivery,
      endWithMessage: endWorkWithMessage,
      targetOf: (agentId, principalId, key) => ({
        ref: conversationRef(agentId, principalId, key),
        sessionKey: printSessionKey(key),
        agentId,
        principalId,
      }),
      renderedKeyOf: (sessionKey) => parseSessionKey(sessionKey).peerId ?? '',
    }),
  );
  building.defer(
    deps.models.onRecovered((model) => {
      heartbeat.modelRecovered(model);
      void durable.api.resumeWaiting({ kind: 'provider', subject: model });
    }),
  );
  return {
    durable: durable.api,
    inbox: inbox.api,
    heartbeat: heartbeat.api,
    webhooks: webhooks.api,
    warnings: webhooks.warnings,
    methods: { ...webhooks.methods, ...inbox.methods, ...heartbeat.methods, ...cron.methods },
    agentChanged(agentId: string): void {
      heartbeat.agentChanged(agentId);
      cron.agentChanged(agentId);
      const agent = agents.find(agentId);
      const models = agent === undefined ? undefined : namedModels(agent).join(' ');
      const hasOthers = models !== modelsBefore.get(agentId);
      if (models === undefined) modelsBefore.delete(agentId);
      else modelsBefore.set(agentId, models);
      // Work for a deleted agent has nothing more to wait for.
      if (agent?.suspended === true) return;
      const resumed = [durable.api.resumeWaiting({ kind: 'agent', subject: agentId }), ...(hasOthers ? [durable.api.resumeAgent(agentId)] : [])];
      // Not awaited: a later check finds what a failure leaves behind.
      void Promise.all(resumed).catch((error: unknown) =>
        log.module('durable').error({ err: error, agentId }, 'Failed to resume work of a changed agent'),
      );
    },
    tools: cron.tools,
    /** Called after all handlers exist, and before the listeners open. */
    async start(): Promise<void> {
      if (!mayWork) return;
      await heartbeat.start();
      await cron.start();
      await durable.api.start();
    },
    /** Starts nothing more and waits for running work, at most `ms`; the next start resumes what does not finish. */
    drain(ms: number): Promise<void> {
      heartbeat.pause();
      cron.pause();
      return durable.drain(ms);
    },
  };
}
