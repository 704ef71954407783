import type { Result } from '@gatehouse/contract';
import { causeNote, withNotes, withRefusals } from '../render/notes.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns, renderDuration, renderTable } from '../render/table.ts';

export type Job = Result<'cron.list'>['jobs'][number];

const textLength = 50;

export function jobTable({ jobs, total }: Result<'cron.list'>): string {
  if (jobs.length === 0) return 'No jobs.';
  const table = renderTable(
    ['Name', 'Agent', 'When', 'Next run', 'State', 'Does', 'Id'],
    jobs.map((job) => [job.name, job.agentId, scheduleText(job.schedule), nextText(job.lifecycle), stateText(job), doesText(job.payload), job.id]),
  );
  return total > jobs.length ? `${table}\nShowing ${jobs.length} of ${total}.` : table;
}

/** Returns the schedule of a job in one line. */
export function scheduleText(schedule: Job['schedule']): string {
  switch (schedule.kind) {
    case 'cron':
      return `${schedule.expr} (${schedule.tz})`;
    case 'every':
      return `every ${renderDuration(schedule.everyMs)}`;
    case 'at':
      return `once, ${timeText(schedule.atMs)}`;
  }
}

export function runTable({ runs }: Result<'cron.runs'>, width?: number): string {
  if (runs.length === 0) return 'No runs yet.';
  const table = renderTable(
    ['For', 'Trigger', 'State', 'Took', 'Delivery', 'Error', 'Gate', 'Why', 'Id'],
    runs.map(
      ({
        scheduledForMs,
        trigger,
        status,
        effectsRefused,
        durationMs,
        deliveryStatus,
        deliveryPending,
        errorKind,
        reason,
        wakeGate,
        executionId,
      }) => [
        timeText(scheduledForMs),
        trigger,
        withRefusals(status, effectsRefused),
        durationMs === undefined ? undefined : durationMs < 1000 ? `${durationMs} ms` : renderDuration(durationMs),
        deliveryPending === true ? 'pending' : deliveryStatus,
        errorKind,
        wakeGate?.outcome,
        (reason ?? wakeGate?.reason) === undefined ? undefined : shorten(reason ?? wakeGate?.reason ?? '', textLength),
        executionId,
      ],
    ),
  );
  return withNotes(table, runs.map(causeNote), width);
}

/** Returns the estimated cost of a recurring agent job; undefined for one that runs once. */
export function estimateText({ runsPerHour, costPerHourUsd }: Result<'cron.preview'>): string | undefined {
  if (runsPerHour === 0) return undefined;
  const often = `${Number(runsPerHour.toPrecision(2))} runs per hour`;
  return costPerHourUsd === null
    ? `Unknown cost: no turn of this agent had a known price yet (${often}).`
    : `Estimated cost: ${dollars(costPerHourUsd)} per hour, based on this agent's recent turns (${often}).`;
}

/** Lists the times that `cron.backfill` would run. */
export function backfillText({ jobName, timesMs, more, costUsd }: Result<'cron.backfill'>): string {
  if (timesMs.length === 0) return `${plainText(jobName)} has no times to run.`;
  return [
    `Times of ${plainText(jobName)} that have not run:`,
    ...timesMs.map((atMs) => `  ${timeText(atMs)}`),
    ...(more ? ['There are more: --limit takes up to 100 of them.'] : []),
    costUsd === null ? 'Unknown cost: no turn of this agent had a known price yet.' : `Estimated cost: ${dollars(costUsd)}.`,
  ].join('\n');
}

function dollars(value: number): string {
  if (value === 0) return '$0';
  return value < 0.0001 ? 'less than $0.0001' : `$${value >= 0.01 ? value.toFixed(2) : value.toFixed(4)}`;
}

export function statusText(status: Result<'cron.status'>): string {
  const { state, configuredEnabled, resolvedAgentId, jobCount, activeClaimCount, store, ledger, intent, lastError } = status;
  return renderColumns([
    ['agent', resolvedAgentId],
    ['state', configuredEnabled ? state : `${state}, disabled by the configuration`],
    ['jobs', jobCount],
    ['running', activeClaimCount],
    ['store', `${store.bytes} bytes, ${store.digest ?? 'no digest'}`],
    ['ledger', `${ledger.bytes} bytes, ${ledger.digest ?? 'no digest'}`],
    ['reset', intent.status === 'pending' ? `${intent.operationId}, ${intent.phase}` : intent.status],
    ['last error', lastError === undefined ? undefined : `${lastError.code} (${lastError.errorKind})`],
  ]);
}

export function timeText(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

function nextText(lifecycle: Job['lifecycle']): string | undefined {
  return lifecycle.state === 'scheduled' && lifecycle.nextRunAtMs !== null ? timeText(lifecycle.nextRunAtMs) : undefined;
}

function stateText({ lifecycle, source }: Job): string {
  const words =
    lifecycle.state === 'scheduled'
      ? 'scheduled'
      : lifecycle.state === 'paused'
        ? lifecycle.reason === 'operator'
          ? 'paused'
          : 'paused: provider failures'
        : lifecycle.state === 'one_shot_claimed'
          ? 'running'
          : 'done';
  return source === 'built_in' ? `${words}, built in` : words;
}

function doesText(payload: Job['payload']): string {
  switch (payload.kind) {
    case 'agent_turn':
      return `turn: ${shorten(payload.message, textLength)}`;
    case 'heartbeat_event':
      return `event: ${shorten(payload.text, textLength)}`;
    case 'delivery':
      return `delivery: ${shorten(payload.text, textLength)}`;
    case 'internal_action':
      return payload.action.replaceAll('_', ' ');
  }
}
