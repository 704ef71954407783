import { claimBackfill, claimManually, claimOccurrence } from '../transactions/claim-occurrence.ts';
import type { WorkAuthority } from '../features/access/tokens/api.ts';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import type { EndpointsApi } from '../features/channels/delivery/api.ts';
import { createCron } from '../features/unattended/cron/cron.ts';
import type { AuthorityDeps } from '../features/unattended/cron/occurrences/authority.ts';
import type { InternalAction } from '../features/unattended/cron/occurrences/run-action.ts';
import { createWakeGate } from '../features/unattended/cron/occurrences/wake-gate/wake-gate.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import type { HeartbeatApi } from '../features/unattended/heartbeat/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import type { MemoryLifeApi } from '../features/knowledge/memory/api.ts';
import { conversationRef, conversationTarget, parseSessionKey, printSessionKey, tenantId } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import { finishOccurrence, readUnfinished } from '../transactions/finish-occurrence.ts';
import type { IdentityOf } from '../kernel/call-context.ts';
import { systemClock } from '../kernel/clock.ts';
import type { FenceText } from '../runtime/fence.ts';
import type { Assembly } from './assembly.ts';

export interface CronWiring {
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly turns: TurnsApi;
  readonly durable: DurableWork;
  readonly heartbeat: HeartbeatApi;
  readonly inbox: InboxApi;
  readonly endpoints: EndpointsApi;
  readonly authority: WorkAuthority;
  readonly memory: MemoryLifeApi;
  readonly fence: FenceText;
  readonly identityOf: IdentityOf;
  readonly knowsModel: (name: string) => boolean;
  readonly mayWrite: AuthorityDeps['mayWrite'];
  readonly refusalOf: AuthorityDeps['refusalOf'];
  /** Called after messages were stored. */
  readonly noticeMessages: () => void;
  /** Ends the waits of a root run for approvals, as denied. */
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
}

/** Wires scheduled jobs to what they use. */
export function wireCron({ live, core }: Assembly, { turns, memory, identityOf, knowsModel, ...deps }: CronWiring) {
  const guards = live(({ autonomy }) => autonomy.guards);
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
    ...core('cron'),
    config: live(({ scheduler }) => scheduler.cron),
    selfMax: () => guards.current.cronSelfMax,
    input: {
      tenantId,
      knowsModel,
      endpoints: deps.endpoints,
      authority: deps.authority,
      refOf(agentId, principalId, sessionKey) {
        const key = parseSessionKey(sessionKey);
        return printSessionKey(key) === sessionKey ? conversationRef(agentId, principalId, key) : undefined;
      },
    },
    execute: {
      turns,
      identityOf,
      mayWrite: deps.mayWrite,
      refusalOf: deps.refusalOf,
      conversationOf: conversationTarget,
      // A script runs in real time, whatever clock the rest uses.
      runWakeGate: createWakeGate({ after: systemClock.after }),
      actions: { memory_review: review, reflection: review, memory_lifecycle: lifecycle },
      finish: finishOccurrence,
    },
    operations: { claim: claimOccurrence, claimManually, claimBackfill, unfinished: readUnfinished },
  });
}
