import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentHeartbeat, heartbeatFields } from '../shared/agent-config.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';
import { WakeAdmission } from '../shared/wake.ts';

const HeartbeatState = once(() =>
  z
    .strictObject({
      agentId: AgentId,
      enabled: z.boolean().describe('Whether both the agent and the installation enable it.'),
      intervalMs: z.int().min(0),
      lastRunAtMs: EpochMs.nullable().describe('Start of the last beat that called a model.'),
      nextDueAtMs: EpochMs.nullable().describe('Null when it is off, suspended or stopped.'),
      tickStartedAtMs: EpochMs.nullable().describe('Start of the running beat.'),
      consecutiveErrors: z.int().min(0),
      backoffUntilMs: EpochMs.nullable(),
      lastAlertAtMs: EpochMs.nullable(),
      lastErrorKind: z.enum(['transient', 'permanent']).nullable(),
      stoppedBy: z
        .enum(['auth', 'billing'])
        .nullable()
        .describe('The provider rejected the key or the account: no beat runs until one is triggered manually or the configuration changes.'),
      queuedEvents: z.int().min(0).describe('Number of events queued for the next beat.'),
    })
    .meta({ id: 'HeartbeatState' }),
);

const Effective = once(() => z.strictObject({ ...AgentHeartbeat().shape }).meta({ id: 'EffectiveHeartbeat' }));

const exampleState = {
  agentId: 'default',
  enabled: true,
  intervalMs: 1_800_000,
  lastRunAtMs: 1_790_000_000_000,
  nextDueAtMs: 1_790_001_800_000,
  tickStartedAtMs: null,
  consecutiveErrors: 0,
  backoffUntilMs: null,
  lastAlertAtMs: null,
  lastErrorKind: null,
  stoppedBy: null,
  queuedEvents: 0,
};

export const heartbeat = {
  'heartbeat.states': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the agents with the states of their heartbeats.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ agents: z.array(HeartbeatState()) }),
    examples: [{ params: {}, result: { agents: [exampleState] } }],
    since: '0.1.0',
  }),
  'heartbeat.get': method({
    scope: 'admin',
    risk: 'read',
    summary: "Returns an agent's own heartbeat configuration and the effective one.",
    params: () => z.strictObject({ agentId: AgentId }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        perAgent: AgentHeartbeat(),
        effective: Effective(),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default' },
        result: {
          agentId: 'default',
          perAgent: { enabled: true },
          effective: { enabled: true, intervalMs: 1_800_000, lightContext: true, ackMaxChars: 300 },
        },
      },
    ],
    since: '0.1.0',
  }),
  'heartbeat.update': method({
    scope: 'admin',
    risk: 'mutate',
    summary: "Changes an agent's heartbeat configuration, effective immediately.",
    description:
      'Omitted fields keep their values; `null` resets a field to its value in `scheduler.heartbeat`. The configuration is the key `heartbeat` of the agent, so `agents.get` returns it too. A heartbeat stopped by its model starts again.',
    params: () =>
      z.strictObject({
        agentId: AgentId,
        enabled: z.boolean().nullish(),
        intervalMs: heartbeatFields().intervalMs.nullish(),
        prompt: heartbeatFields().prompt.nullish(),
        model: heartbeatFields().model.nullish(),
        lightContext: heartbeatFields().lightContext.nullish(),
        ackMaxChars: heartbeatFields().ackMaxChars.nullish(),
        activeHours: heartbeatFields().activeHours.nullish(),
        toolPolicy: heartbeatFields().toolPolicy.nullish(),
        timeoutMs: heartbeatFields().timeoutMs.nullish(),
        showOk: heartbeatFields().showOk.nullish(),
        showAlerts: heartbeatFields().showAlerts.nullish(),
        alertThreshold: heartbeatFields().alertThreshold.nullish(),
        alertCooldownMs: heartbeatFields().alertCooldownMs.nullish(),
      }),
    result: () => z.strictObject({ agentId: AgentId, config: AgentHeartbeat(), updated: z.literal(true), nextDueAtMs: EpochMs.nullable() }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default', enabled: true, activeHours: { start: '08:00', end: '22:00', timeZone: 'Europe/Berlin' }, prompt: null },
        result: {
          agentId: 'default',
          config: { enabled: true, activeHours: { start: '08:00', end: '22:00', timeZone: 'Europe/Berlin' } },
          updated: true,
          nextDueAtMs: 1_790_001_800_000,
        },
      },
    ],
    since: '0.1.0',
  }),
  'heartbeat.trigger': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Requests a beat of an agent now; the call does not wait for it.',
    description:
      'Ignores active hours and the backoff after errors. Like every beat, it calls no model when the checklist is empty and there are no events.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ agentId: AgentId, triggered: z.literal(true), admission: WakeAdmission }),
    errors: ['not_found', 'precondition_failed', 'unavailable'],
    examples: [
      {
        params: { agentId: 'default' },
        result: {
          agentId: 'default',
          triggered: true,
          admission: {
            status: 'accepted',
            accepted: true,
            coalesced: false,
            disposition: 'new_occurrence',
            correlationId: 'hw_0199f2c4-8a3b-7e21-9c55-1f2d3e4a5b6c',
            lane: 'normal',
            retainedReason: 'manual',
          },
        },
      },
    ],
    since: '0.1.0',
  }),
};
