import { hash } from 'node:crypto';
import { CronJobPayload, CronPolicies, cronTriggers, once } from '@gatehouse/contract';
import * as z from 'zod';
import { StoredChatAuthor } from '../../../../kernel/chat-endpoint.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { NewWork } from '../../durable/api.ts';
import type { Job } from '../jobs/job.ts';
import type { OccurrenceRow } from './occurrence-store.ts';
import { cronWork } from './work-kind.ts';

/** Snapshot of a job taken when its occurrence starts; later changes of the job do not affect it. */
export const CronWork = once(() =>
  z.strictObject({
    executionId: z.string(),
    jobId: z.string(),
    jobName: z.string(),
    agentId: z.string(),
    principalId: z.string(),
    tokenId: z.string(),
    /** Set for a job that was added in a chat. */
    author: StoredChatAuthor().optional(),
    scheduledForMs: z.int(),
    startedAtMs: z.int(),
    trigger: z.enum(cronTriggers),
    /** True for a time that is run on request. */
    isBackfill: z.literal(true).optional(),
    /** Time zone of the schedule, when it has one. */
    timeZone: z.string().optional(),
    payload: CronJobPayload(),
    policies: CronPolicies(),
  }),
);
export type CronWork = z.output<ReturnType<typeof CronWork>>;

export function workOf({ row, schedule, payload, policies, author }: Job, occurrence: OccurrenceRow, atMs: number, isBackfill = false): NewWork {
  const work: CronWork = {
    executionId: occurrence.executionId,
    jobId: row.id,
    jobName: row.name,
    agentId: row.agentId,
    principalId: row.principalId,
    tokenId: row.tokenId,
    ...(author !== undefined && { author }),
    scheduledForMs: occurrence.scheduledForMs,
    startedAtMs: occurrence.startedAtMs,
    trigger: occurrence.trigger,
    ...(isBackfill && { isBackfill }),
    ...(schedule.kind === 'cron' && { timeZone: schedule.tz }),
    payload,
    policies,
  };
  return {
    id: newId('wi'),
    kind: cronWork,
    key: occurrence.executionId,
    digest: hash('sha256', JSON.stringify(work)),
    agentId: row.agentId,
    payload: work,
    atMs,
  };
}

/** Returns the root run id that governs everything an occurrence does (json-rpc.md §2.3). */
export const rootRunId = (executionId: string) => `root-cron-${executionId}`;

/** Returns what names a run, in events and in lists. */
export const identityOf = ({ executionId, jobId, agentId, scheduledForMs, trigger, workKind, startedAtMs }: OccurrenceRow) => ({
  executionId,
  jobId,
  agentId,
  scheduledForMs,
  trigger,
  workKind,
  rootRunId: rootRunId(executionId),
  startedAtMs,
});
