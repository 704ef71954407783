import { claimManually, claimOccurrence } from '../transactions/claim-occurrence.ts';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import { createCron } from '../features/unattended/cron/cron.ts';
import type { InternalAction } from '../features/unattended/cron/occurrences/execute.ts';
import { createWakeGate } from '../features/unattended/cron/occurrences/wake-gate/wake-gate.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import type { HeartbeatApi } from '../features/unattended/heartbeat/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import type { MemoryLifeApi } from '../features/knowledge/memory/api.ts';
import { conversationRef, parseSessionKey, printSessionKey, tenantId } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import { finishOccurrence, readUnfinished } from '../transactions/finish-occurrence.ts';
import type { Identity } from '../kernel/call-context.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import type { Db } from '../kernel/db/db.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { FenceLabel } from '../runtime/fence.ts';
import type { ServerOptions } from '../server-handle.ts';

export interface CronWiring {
  readonly options: ServerOptions;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly bootId: string;
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly turns: TurnsApi;
  readonly durable: DurableWork;
  readonly heartbeat: HeartbeatApi;
  readonly inbox: InboxApi;
  readonly memory: MemoryLifeApi;
  readonly fence: (text: string, label: FenceLabel) => string;
  readonly identityOf: (tokenId: string) => Identity | undefined;
  readonly knowsModel: (name: string) => boolean;
  readonly noticeMessages: () => void;
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
}

/** Wires scheduled jobs to what they use. */
export function wireCron({ options, turns, memory, identityOf, knowsModel, ...deps }: CronWiring) {
  const review: InternalAction = async (agent, signal) => {
    const { conversationsReviewed, conversationsFailed, extracted, duplicates, rejected, admitted, derived, consolidated } = await memory.review(
      agent,
      signal,
    );
    return {
      counters: { conversationsReviewed, conversationsFailed, extracted, duplicates, rejected, admitted, derived, consolidated },
      failed: conversationsFailed > 0 && conversationsReviewed === 0,
    };
  };
  const lifecycle: InternalAction = async (agent: Agent, signal) => {
    const { examined, promoted, demoted, evicted } = await memory.lifecycle(agent, { dryRun: false, signal });
    return { counters: { examined, promoted, demoted, evicted }, failed: false };
  };
  return createCron({
    ...deps,
    log: options.log.module('cron'),
    config: options.config.scheduler.cron,
    selfMax: options.config.autonomy.guards.cronSelfMax,
    input: {
      tenantId,
      knowsModel,
      refOf(agentId, principalId, sessionKey) {
        const key = parseSessionKey(sessionKey);
        return printSessionKey(key) === sessionKey ? conversationRef(agentId, principalId, key) : undefined;
      },
    },
    execute: {
      turns,
      identityOf,
      conversationOf: (agentId, principalId, key) => ({
        ref: conversationRef(agentId, principalId, key),
        sessionKey: printSessionKey(key),
        agentId,
        principalId,
      }),
      // A script runs in real time, whatever clock the rest uses.
      runWakeGate: createWakeGate({ after: systemClock.after }),
      actions: { memory_review: review, reflection: review, memory_lifecycle: lifecycle },
    },
    finish: finishOccurrence,
    operations: { claim: claimOccurrence, claimManually, unfinished: readUnfinished },
  });
}
