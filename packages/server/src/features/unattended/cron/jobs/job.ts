import { type CronJob, CronJobPayload, type CronLifecycle, CronPolicies, CronSchedule, type CronWorkKind } from '@gatehouse/contract';
import type { CallContext, ChatAuthor } from '../../../../kernel/call-context.ts';
import { StoredChatAuthor } from '../../../../kernel/chat-endpoint.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { JobRow } from '../store.ts';

/** A job parsed from a valid row. */
export interface Job {
  readonly row: JobRow;
  readonly schedule: CronSchedule;
  readonly payload: CronJobPayload;
  readonly policies: CronPolicies;
  readonly workKind: CronWorkKind;
  readonly author: ChatAuthor | undefined;
}

const workKinds: Readonly<Record<CronJobPayload['kind'], CronWorkKind>> = {
  agent_turn: 'agent_turn',
  heartbeat_event: 'heartbeat_event',
  delivery: 'delivery_only',
  internal_action: 'internal_action',
};

/** Returns the author of a job to store, when it is added or changed in a chat. */
export function authorJsonOf({ agentCaller }: CallContext): string | null {
  const author = agentCaller?.turn?.author;
  return author === undefined ? null : JSON.stringify(author);
}

/** Parses a row; returns undefined when it is damaged. */
export function parseJob(row: JobRow): Job | undefined {
  try {
    const payload = CronJobPayload().parse(parseJson(row.payloadJson));
    return {
      row,
      schedule: CronSchedule().parse(parseJson(row.scheduleJson)),
      payload,
      policies: CronPolicies().parse(parseJson(row.policiesJson)),
      workKind: workKinds[payload.kind],
      author: row.authorJson === null ? undefined : StoredChatAuthor().parse(parseJson(row.authorJson)),
    };
  } catch {
    return undefined;
  }
}

/** Returns a job as shown by `cron.list`. */
export function viewOf({ row, schedule, payload, policies }: Job, leastMs: number): CronJob {
  const isHeld = schedule.kind === 'every' && schedule.everyMs < leastMs;
  return {
    id: row.id,
    name: row.name,
    agentId: row.agentId,
    source: row.source,
    schedule,
    ...(isHeld && { leastIntervalMs: leastMs }),
    lifecycle: lifecycleOf(row),
    payload,
    ...policies,
  };
}

function lifecycleOf(row: JobRow): CronLifecycle {
  const { nextRunAtMs, errors: consecutiveDependencyErrors, activeExecutionId } = row;
  switch (row.state) {
    case 'scheduled':
      return { state: 'scheduled', nextRunAtMs, consecutiveDependencyErrors };
    case 'paused':
      return { state: 'paused', reason: row.pauseReason ?? 'operator', nextRunAtMs, consecutiveDependencyErrors };
    case 'one_shot_claimed':
      return {
        state: 'one_shot_claimed',
        executionId: activeExecutionId ?? '',
        scheduledForMs: row.claimedForMs ?? 0,
        claimedAtMs: row.claimedAtMs ?? 0,
      };
    case 'one_shot_terminal':
      return { state: 'one_shot_terminal', terminalExecutionId: activeExecutionId ?? '', terminalAtMs: row.endedAtMs ?? 0 };
  }
}
