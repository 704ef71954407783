import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { LifecycleReport } from '../api.ts';
import { applyLifecycle, readLifePage } from './life-store.ts';
import { beginPlan, type LifeAction, type LifePlan } from './lifecycle-plan.ts';

/** Rows that are judged at a time, and actions of one write: neither blocks its thread for long. */
const pageRows = 1_000;
const perWrite = 25;
/** Plans of one sweep; each takes thousands of actions. */
const maxRounds = 20;
/** Actions that a report shows. */
const shownActions = 100;

export interface LifecycleDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Writes the pending counts. */
  readonly flushUses: () => Promise<void>;
}

/**
 * Sweeps the memories of one agent: promotes used ones, demotes fading ones and those that turns fail with, evicts
 * expired and faded ones and those beyond the limits. `dryRun` only plans.
 */
export async function sweepMemories(
  deps: LifecycleDeps,
  { agent, dryRun, signal }: { readonly agent: Agent; readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<LifecycleReport> {
  const { db, bus, clock, log } = deps;
  const startedAt = clock.monotonic();
  await deps.flushUses();
  const counts = { promoted: 0, demoted: 0, evicted: 0 };
  const shown: LifeAction[] = [];
  let examined: number | undefined;
  let plan: LifePlan;
  let rounds = 0;
  do {
    const plannedAtMs = clock.ageNow();
    plan = await planOf(deps, agent, plannedAtMs, signal);
    examined ??= plan.examined;
    shown.push(...plan.actions.slice(0, shownActions - shown.length));
    if (dryRun) for (const { kind } of plan.actions) counts[countOf[kind]] += 1;
    else
      for (let from = 0; from < plan.actions.length; from += perWrite) {
        signal.throwIfAborted();
        const done = await db.write(applyLifecycle, { actions: plan.actions.slice(from, from + perWrite), plannedAtMs });
        counts.promoted += done.promoted;
        counts.demoted += done.demoted;
        counts.evicted += done.evicted;
      }
    rounds += 1;
  } while (plan.more && !dryRun && rounds < maxRounds);
  const report: LifecycleReport = {
    agentId: agent.id,
    dryRun,
    examined,
    ...counts,
    more: plan.more,
    actions: shown,
    durationMs: Math.round(clock.monotonic() - startedAt),
  };
  if (!dryRun) {
    const timestamp = clock.now();
    if (counts.demoted > 0) bus.emit('learning:memory_demoted', { agentId: agent.id, count: counts.demoted, timestamp });
    if (counts.evicted > 0) bus.emit('learning:memory_evicted', { agentId: agent.id, count: counts.evicted, timestamp });
    bus.emit('learning:lifecycle_swept', { agentId: agent.id, count: examined, timestamp });
  }
  log.info({ agentId: agent.id, dryRun, examined, ...counts, durationMs: report.durationMs }, 'Swept memories');
  return report;
}

const countOf = { promote: 'promoted', demote: 'demoted', evict: 'evicted' } as const;

async function planOf({ db }: LifecycleDeps, agent: Agent, nowMs: number, signal: AbortSignal): Promise<LifePlan> {
  const plan = beginPlan(nowMs, agent.config.memory.limits);
  let afterSeq: number | null = 0;
  while (afterSeq !== null) {
    signal.throwIfAborted();
    const page: { rows: Parameters<typeof plan.add>[0]; nextSeq: number | null } = await db.read(readLifePage, {
      agentId: agent.id,
      afterSeq,
      limit: pageRows,
    });
    plan.add(page.rows);
    afterSeq = page.nextSeq;
  }
  return plan.end();
}
