import { hash } from 'node:crypto';
import type { CronAction, CronSchedule } from '@gatehouse/contract';
import type { CronConfig } from '../config.ts';
import { nextRun } from '../schedule/schedule.ts';
import type { JobRow } from '../store.ts';

/** Owner of the built-in jobs. */
const systemPrincipal = 'system';

interface BuiltIn {
  readonly action: CronAction;
  readonly name: string;
  readonly enabled: (config: CronConfig) => boolean;
  /** Returns the expression for a minute of the hour; agents get different minutes, so that they do not all start at once. */
  readonly expr: (minute: number) => string;
}

const builtIns: readonly BuiltIn[] = [
  { action: 'memory_review', name: 'memory review', enabled: ({ builtIn }) => builtIn.memoryReview.enabled, expr: (minute) => `${minute} 2 * * *` },
  {
    action: 'memory_lifecycle',
    name: 'memory lifecycle',
    enabled: ({ builtIn }) => builtIn.memoryLifecycle.enabled,
    expr: (minute) => `${minute} 3 * * *`,
  },
  { action: 'reflection', name: 'reflection', enabled: ({ builtIn }) => builtIn.reflection.enabled, expr: (minute) => `${minute} 4 * * 0` },
];

/** Returns the built-in jobs that an agent should have. */
export function builtInJobs(agentId: string, config: CronConfig, nowMs: number): JobRow[] {
  const minute = Number.parseInt(hash('sha256', agentId).slice(0, 8), 16) % 60;
  return builtIns
    .filter(({ enabled }) => enabled(config))
    .map(({ action, name, expr }) => {
      const schedule: CronSchedule = { kind: 'cron', expr: expr(minute), tz: config.defaultTimezone };
      const nextRunAtMs = nextRun(schedule, nowMs);
      return {
        id: `cj_${action}_${agentId}`,
        agentId,
        name,
        source: 'built_in',
        principalId: systemPrincipal,
        tokenId: systemPrincipal,
        scheduleJson: JSON.stringify(schedule),
        payloadJson: JSON.stringify({ kind: 'internal_action', action }),
        policiesJson: '{}',
        state: 'scheduled',
        pauseReason: null,
        nextRunAtMs,
        dueAtMs: nextRunAtMs,
        highWaterMs: nowMs,
        errors: 0,
        activeExecutionId: null,
        claimedForMs: null,
        claimedAtMs: null,
        endedAtMs: null,
        revision: 1,
        createdAtMs: nowMs,
        authorJson: null,
      };
    });
}
