import type { Result } from '@gatehouse/contract';
import { dateTime, duration } from '../../data/format.ts';
import type { Tone } from '../../ui/parts.tsx';
import type { Job } from './job-draft.ts';

export type Run = Result<'cron.runs'>['runs'][number];

/** When a job runs, in a line. */
export function scheduleWords(schedule: Job['schedule']): string {
  switch (schedule.kind) {
    case 'cron':
      return `${schedule.expr} in ${schedule.tz}`;
    case 'every':
      return `every ${schedule.everyMs < 1000 ? `${schedule.everyMs} ms` : duration(schedule.everyMs / 1000)}`;
    case 'at':
      return `once, ${dateTime(schedule.atMs)}`;
  }
}

export function lifecycleWords(lifecycle: Job['lifecycle']): { readonly words: string; readonly tone: Tone } {
  switch (lifecycle.state) {
    case 'scheduled':
      return { words: 'Scheduled', tone: 'good' };
    case 'paused':
      return lifecycle.reason === 'operator' ? { words: 'Paused', tone: 'warn' } : { words: 'Paused: the provider failed', tone: 'bad' };
    case 'one_shot_claimed':
      return { words: 'Running', tone: 'accent' };
    case 'one_shot_terminal':
      return { words: 'Done', tone: 'neutral' };
  }
}

export const payloadNames: Readonly<Record<Job['payload']['kind'], string>> = {
  agent_turn: 'Turn',
  heartbeat_event: 'Event for the heartbeat',
  delivery: 'Delivery',
  internal_action: 'Built-in work',
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

export const gateWords: Readonly<Record<NonNullable<Run['wakeGate']>['outcome'], string>> = {
  woke: 'there was something to do',
  skipped: 'there was nothing to do',
  failed_open: 'it did not decide, so the run took place',
};

export function nextRunOf({ lifecycle }: Job): number | null {
  return lifecycle.state === 'scheduled' ? lifecycle.nextRunAtMs : null;
}
