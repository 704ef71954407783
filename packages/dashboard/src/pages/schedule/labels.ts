import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { dateTime, duration } from '../../data/format.ts';
import type { Tone } from '../../ui/parts.tsx';
import type { Job } from './job-draft.ts';

export type Run = Result<'cron.runs'>['runs'][number];

/** Returns the schedule of a job in one line. */
export function scheduleText(schedule: Job['schedule']): string {
  switch (schedule.kind) {
    case 'cron':
      return t('{expr} in {tz}', { expr: schedule.expr, tz: schedule.tz });
    case 'every':
      return t('every {every}', {
        every: schedule.everyMs < 1000 ? t('{every} ms', { every: schedule.everyMs }) : duration(schedule.everyMs / 1000),
      });
    case 'at':
      return t('once, {at}', { at: dateTime(schedule.atMs) });
  }
}

export function lifecycleLabel(lifecycle: Job['lifecycle']): { readonly text: string; readonly tone: Tone } {
  switch (lifecycle.state) {
    case 'scheduled':
      return { text: t('Scheduled'), tone: 'good' };
    case 'paused':
      return lifecycle.reason === 'operator' ? { text: t('Paused'), tone: 'warn' } : { text: t('Paused: provider failures'), tone: 'bad' };
    case 'one_shot_claimed':
      return { text: t('Running'), tone: 'accent' };
    case 'one_shot_terminal':
      return { text: t('Done'), tone: 'neutral' };
  }
}

export const payloadNames: Readonly<Record<Job['payload']['kind'], string>> = {
  agent_turn: t('Turn'),
  heartbeat_event: t('Heartbeat event'),
  delivery: t('Delivery'),
  internal_action: t('Built-in task'),
};

export function payloadText(payload: Job['payload']): string {
  switch (payload.kind) {
    case 'agent_turn':
      return payload.message;
    case 'internal_action':
      return payload.action.replaceAll('_', ' ');
    default:
      return payload.text;
  }
}

export const runTones: Readonly<Record<Run['status'], Tone>> = {
  started: 'accent',
  dispatched: 'accent',
  completed: 'good',
  failed: 'bad',
  aborted: 'warn',
  skipped: 'neutral',
  unknown: 'warn',
};

export const gateLabels: Readonly<Record<NonNullable<Run['wakeGate']>['outcome'], string>> = {
  woke: t('work to do'),
  skipped: t('nothing to do'),
  failed_open: t('no decision, so the run took place'),
};

export function nextRunOf({ lifecycle }: Job): number | null {
  return lifecycle.state === 'scheduled' ? lifecycle.nextRunAtMs : null;
}
