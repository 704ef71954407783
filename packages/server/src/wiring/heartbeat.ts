import { createHmac } from 'node:crypto';
import type { AgentsApi, ConfigureAgent } from '../features/agents/agents/api.ts';
import { allModelNamesOf } from '../features/agents/agents/model-names.ts';
import { conversationTarget } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { WorkspaceApi } from '../features/environment/workspace/api.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import { beatPrincipal } from '../features/unattended/heartbeat/beat/run-turn.ts';
import { createHeartbeat } from '../features/unattended/heartbeat/heartbeat.ts';
import type { EndpointsApi } from '../features/channels/delivery/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import type { Models } from '../llm/models.ts';
import { beginBeat, endBeat, recoverBeats } from '../transactions/heartbeat-work.ts';
import type { Assembly } from './assembly.ts';

export interface HeartbeatWiring {
  readonly agents: AgentsApi;
  readonly configure: ConfigureAgent;
  readonly knowsModel: (name: string) => boolean;
  readonly models: Pick<Models, 'watch' | 'resolve' | 'defaultModel'>;
  readonly checklist: WorkspaceApi['checklist'];
  readonly durable: DurableWork;
  readonly inbox: InboxApi;
  readonly endpoints: EndpointsApi;
  readonly turns: Pick<TurnsApi, 'runDurably'>;
  /** Whether a turn runs in a conversation. */
  readonly isBusy: (conversationRef: string) => boolean;
}

const beatKey = { userId: 'heartbeat', channelId: 'gateway' };

/** Wires heartbeats to what they use. */
export function wireHeartbeat({ options, bootId, live, core }: Assembly, { models, turns, ...deps }: HeartbeatWiring) {
  const seed = options.installKey.derive('heartbeat');
  const keys = Object.entries(options.env).filter(([name]) => /_(?:KEY|TOKEN)$/.test(name));
  const providers = live((config) => config.providers);
  return createHeartbeat({
    ...deps,
    ...core('heartbeat'),
    bootId,
    config: live(({ scheduler }) => scheduler.heartbeat),
    watchModels(agent) {
      for (const name of allModelNamesOf(agent)) {
        const model = name === undefined ? models.defaultModel() : models.resolve(name);
        if (model !== undefined) models.watch(`${model.provider}/${model.modelId}`);
      }
    },
    turn: turns.runDurably,
    targetOf: (agentId) => conversationTarget(agentId, beatPrincipal, beatKey),
    operations: { begin: beginBeat, end: endBeat, recover: recoverBeats },
    seed,
    // With the settings with which models are reached; keys come from the environment as well.
    fingerprintOf: ({ config }) =>
      createHmac('sha256', seed)
        .update(JSON.stringify([config, providers.current, keys]))
        .digest('base64url'),
  });
}
