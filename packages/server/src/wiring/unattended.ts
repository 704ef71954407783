import type { AgentsApi } from '../features/agents/agents/api.ts';
import { allModelNamesOf } from '../features/agents/agents/model-names.ts';
import { conversationTarget, parseSessionKey } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import { createAgentChanges } from '../features/unattended/durable/changed-agents.ts';
import { createDurable, type DurableDeps } from '../features/unattended/durable/durable.ts';
import { createWebhooks } from '../features/unattended/webhooks/webhooks.ts';
import type { Models } from '../llm/models.ts';
import { acceptDelivery } from '../transactions/accept-delivery.ts';
import { endWork, endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import type { Assembly } from './assembly.ts';
import type { Foundation } from './foundation.ts';
import { type CronWiring, wireCron } from './cron.ts';
import { type HeartbeatWiring, wireHeartbeat } from './heartbeat.ts';

/** Built here, for those who use it. */
type Own = 'bootId' | 'durable' | 'heartbeat';

export interface UnattendedWiring extends Omit<HeartbeatWiring, Own>, Omit<CronWiring, Own> {
  readonly agents: AgentsApi;
  readonly turns: TurnsApi;
  readonly models: HeartbeatWiring['models'] & Pick<Models, 'onRecovered'>;
  readonly onClaimEnd: NonNullable<DurableDeps['onClaimEnd']>;
  readonly foundation: Pick<Foundation, 'lifetime' | 'isHeld'>;
}
export type Unattended = ReturnType<typeof wireUnattended>;

/** Wires what agents do without a user: durable work, heartbeats, jobs and webhooks. */
export function wireUnattended(assembly: Assembly, deps: UnattendedWiring) {
  const { building, options, bootId, onClaimed, live, core } = assembly;
  const { agents, models } = deps;
  const { controlPlaneOnly } = deps.foundation.lifetime;
  const { log } = options;
  const durableConfig = live(({ durable: section }) => section);
  const durable = building.use(
    createDurable({
      ...core('durable'),
      bootId,
      endWork,
      maxWaitMs: () => durableConfig.current.maxWaitMs,
      watchModel: models.watch,
      isSuspended: (agentId) => agents.find(agentId)?.suspended === true,
      isHeld: deps.foundation.isHeld,
      onClaimEnd: deps.onClaimEnd,
    }),
  );
  const resumeChanged = createAgentChanges({ agents, durable: durable.api, modelNamesOf: allModelNamesOf, log: log.module('durable') });
  const heartbeat = building.use(wireHeartbeat(assembly, { ...deps, durable: durable.api }));
  const beats = live(({ providers, scheduler }) => [providers, scheduler.heartbeat]);
  building.use(beats.onChange(() => agents.list().forEach(({ id }) => heartbeat.agentChanged(id))));
  const cron = building.use(wireCron(assembly, { ...deps, bootId, durable: durable.api, heartbeat: heartbeat.api }));
  const gateway = live((whole) => whole.gateway);
  const webhooks = building.use(
    createWebhooks({
      ...core('webhooks'),
      agents,
      turns: deps.turns,
      inbox: deps.inbox,
      endpoints: deps.endpoints,
      config: live(({ webhooks: section }) => section),
      httpBodyLimitBytes: () => gateway.current.httpBodyLimitBytes,
      durable: durable.api,
      heartbeat: heartbeat.api,
      acceptDelivery,
      endWithMessage: endWorkWithMessage,
      targetOf: conversationTarget,
      renderedKeyOf: (sessionKey) => parseSessionKey(sessionKey).peerId ?? '',
    }),
  );
  building.defer(
    models.onRecovered((model) => {
      heartbeat.modelRecovered(model);
      void durable.api.resumeWaiting({ kind: 'provider', subject: model });
    }),
  );
  return {
    durable: durable.api,
    webhooks: webhooks.api,
    warnings: webhooks.warnings,
    methods: { ...webhooks.methods, ...heartbeat.methods, ...cron.methods },
    tools: cron.tools,
    agentChanged(agentId: string): void {
      heartbeat.agentChanged(agentId);
      cron.agentChanged(agentId);
      resumeChanged(agentId);
    },
    /** Called after all handlers exist, and before the listeners open. */
    async start(): Promise<void> {
      // Nothing runs on its own after repeated crashes.
      if (controlPlaneOnly) return;
      await heartbeat.start();
      await cron.start();
      await durable.api.start();
      // Work is taken over last: what runs it must know it.
      onClaimed(heartbeat.recover.bind(heartbeat));
      onClaimed(cron.recover);
      onClaimed(durable.recover);
    },
    /** Starts nothing more and waits for running work, at most `ms`; the next start resumes what does not finish. */
    drain(ms: number): Promise<void> {
      heartbeat.pause();
      cron.pause();
      return durable.drain(ms);
    },
  };
}
