import * as z from 'zod';
import { method } from '../method.ts';
import { AgentHeartbeat, heartbeatFields } from '../shared/agent-config.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';
import { WakeAdmission } from '../shared/wake.ts';

const HeartbeatState = z
  .strictObject({
    agentId: AgentId,
    enabled: z.boolean().describe('By its own configuration and that of the installation.'),
    intervalMs: z.int().min(0),
    lastRunAtMs: EpochMs.nullable().describe('When the last beat that called a model began.'),
    nextDueAtMs: EpochMs.nullable().describe('Null while there is none: off, suspended, or stopped.'),
    tickStartedAtMs: EpochMs.nullable().describe('When the beat began that runs now.'),
    consecutiveErrors: z.int().min(0),
    backoffUntilMs: EpochMs.nullable(),
    lastAlertAtMs: EpochMs.nullable(),
    lastErrorKind: z.enum(['transient', 'permanent']).nullable(),
    stoppedBy: z
      .enum(['auth', 'billing'])
      .nullable()
      .describe('The model refused the key or the account: no beat runs until one is triggered by hand or the configuration changes.'),
    queuedEvents: z.int().min(0).describe('What the next beat is told of.'),
  })
  .meta({ id: 'HeartbeatState' });

const Effective = z.strictObject({ ...AgentHeartbeat.shape }).meta({ id: 'EffectiveHeartbeat' });

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
const fields = heartbeatFields;

export const heartbeat = {
  'heartbeat.states': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the agents with what their heartbeats are doing.',
    params: z.strictObject({}),
    result: z.strictObject({ agents: z.array(HeartbeatState) }),
    examples: [{ params: {}, result: { agents: [exampleState] } }],
    since: '0.1.0',
  }),
  'heartbeat.get': method({
    scope: 'admin',
    risk: 'read',
    summary: "Returns an agent's own heartbeat configuration and what holds for it altogether.",
    params: z.strictObject({ agentId: AgentId }),
    result: z.strictObject({
      agentId: AgentId,
      perAgent: AgentHeartbeat,
      effective: Effective,
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
    summary: "Changes an agent's heartbeat configuration, stored and effective at once.",
    description:
      'Fields that are left out stay; `null` resets one to what `scheduler.heartbeat` says. It is the key `heartbeat` of the agent, so that `agents.get` shows it too. A heartbeat that was stopped by its model begins again.',
    params: z.strictObject({
      agentId: AgentId,
      enabled: z.boolean().nullish(),
      intervalMs: fields.intervalMs.nullish(),
      prompt: fields.prompt.nullish(),
      model: fields.model.nullish(),
      lightContext: fields.lightContext.nullish(),
      ackMaxChars: fields.ackMaxChars.nullish(),
      activeHours: fields.activeHours.nullish(),
      toolPolicy: fields.toolPolicy.nullish(),
      timeoutMs: fields.timeoutMs.nullish(),
      showOk: fields.showOk.nullish(),
      showAlerts: fields.showAlerts.nullish(),
      alertThreshold: fields.alertThreshold.nullish(),
      alertCooldownMs: fields.alertCooldownMs.nullish(),
    }),
    result: z.strictObject({ agentId: AgentId, config: AgentHeartbeat, updated: z.literal(true), nextDueAtMs: EpochMs.nullable() }),
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
    summary: 'Asks for a beat of an agent now; the answer does not wait for it.',
    description:
      'It runs at any hour and also while beats wait after an error. As every beat, it calls no model when the checklist is empty and nothing has happened.',
    params: z.strictObject({ agentId: AgentId }),
    result: z.strictObject({ agentId: AgentId, triggered: z.literal(true), admission: WakeAdmission }),
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
