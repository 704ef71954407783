import { type CronPolicies, CronPolicies as CronPoliciesSchema, type Params } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, isAdmin } from '../../../../kernel/call-context.ts';
import type { CronConfig } from '../config.ts';
import { dueTime } from '../occurrences/claim.ts';
import { checkInterval } from '../schedule/least-interval.ts';
import { nextRun } from '../schedule/schedule.ts';
import type { JobChange } from '../store.ts';
import { authorJsonOf, type Job } from './job.ts';
import { checkJob, checkSchedule, type InputDeps, policiesFor, wrong } from './job-input.ts';

type Changes = Omit<Params<'cron.update'>, 'jobId' | 'jobName'>;

export interface ChangeDeps {
  readonly config: CronConfig;
  readonly input: InputDeps;
  readonly nowMs: number;
}

const nullable = ['deliveryTarget', 'wakeGate', 'cacheRetention', 'toolPolicy', 'maxConsecutiveDependencyErrors'] as const;

/** Returns the row of a job after an update; throws when the changes are not allowed. */
export async function changed(
  { row, ...job }: Job,
  { changes, call }: { readonly changes: Changes; readonly call: CallContext },
  { config, input, nowMs }: ChangeDeps,
): Promise<JobChange> {
  if (row.state === 'one_shot_claimed' || row.state === 'one_shot_terminal')
    throw new AppError('precondition_failed', `Job ${row.name} has already run once; add another job`);
  const { name, schedule: request, payload = job.payload, paused, ...policyChanges } = changes;
  const schedule = request === undefined ? job.schedule : checkSchedule(request, nowMs, input);
  if (request !== undefined) checkInterval(schedule, isAdmin(call), { config, nowMs });
  const policies = merged(policiesFor(payload.kind, job.policies), policyChanges);
  // Pausing or rescheduling a job must not fail because its model was removed since.
  const [field] = Object.entries({ payload: changes.payload, ...policyChanges }).find(([, given]) => given !== undefined) ?? [];
  if (field !== undefined) {
    input.authority.assertCovers({ ...row, isRepeated: true }, call, field);
    await checkJob({ agentId: row.agentId, payload, policies }, call, input, changes.deliveryTarget !== undefined);
  }
  const resumes = paused === false && row.state === 'paused';
  const isMoved = request !== undefined || resumes;
  // Claimed times stay in the past even if the clock steps back.
  const nextRunAtMs = isMoved ? nextRun(schedule, Math.max(nowMs, row.highWaterMs)) : row.nextRunAtMs;
  if (isMoved && nextRunAtMs === null)
    throw wrong(request === undefined ? 'paused' : 'schedule', 'the time of the job is in the past; set another schedule');
  const state = paused === true ? 'paused' : paused === false ? 'scheduled' : row.state;
  return {
    id: row.id,
    revision: row.revision,
    name: name ?? row.name,
    scheduleJson: JSON.stringify(schedule),
    payloadJson: JSON.stringify(payload),
    policiesJson: JSON.stringify(policies),
    state,
    pauseReason: state === 'scheduled' ? null : paused === true ? ('operator' as const) : row.pauseReason,
    nextRunAtMs,
    dueAtMs: isMoved ? dueTime({ id: row.id, schedule }, nextRunAtMs, config.staggerWindowMs) : row.dueAtMs,
    errors: resumes ? 0 : row.errors,
    // The text of its turns is that of its last author.
    authorJson: (field === undefined ? null : authorJsonOf(call)) ?? row.authorJson,
  };
}

/** Drops the keys whose value is undefined. */
export function present(given: Partial<Record<keyof CronPolicies, unknown>>): CronPolicies {
  return CronPoliciesSchema().parse(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
}

function merged(former: CronPolicies, changes: Partial<Record<keyof CronPolicies, unknown>>): CronPolicies {
  const cleared = new Set<string>(nullable.filter((field) => changes[field] === null));
  const kept = Object.entries({ ...former, ...dropUndefined(changes) }).filter(([field]) => !cleared.has(field));
  return present(Object.fromEntries(kept));
}

const dropUndefined = (given: object) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
