import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { WorkspaceApi } from '../../../environment/workspace/api.ts';
import type { DurableWork } from '../../durable/api.ts';
import { beatKind } from '../api.ts';
import type { HeartbeatConfig } from '../config.ts';
import { waitingEvents } from '../store.ts';
import { isActive } from '../timing/active-hours.ts';
import type { Coalescer, Occurrence } from '../timing/coalescer.ts';
import type { BeatPlan } from '../timing/plan.ts';

import { beatMessage } from './beat-prompt.ts';
import type { HeartbeatOperations } from './operations.ts';
import type { BeatPayload } from './result.ts';
import type { BeatStates } from './states.ts';

export interface BeginDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly bootId: string;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly checklist: WorkspaceApi['checklist'];
  readonly durable: Pick<DurableWork, 'begin'>;
  readonly operations: Pick<HeartbeatOperations, 'begin'>;
  readonly settingsOf: (agent: Agent) => HeartbeatConfig;
  readonly states: BeatStates;
  readonly plan: Pick<BeatPlan, 'slotOf'>;
  readonly coalescer: Coalescer;
  /** Beats whose work starts while it is stored; false: another process has begun it. */
  readonly beginning: Map<string, Promise<boolean>>;
}

/** Starts a beat as durable work; one without checklist items and events ends here, before any model call. */
export async function beginBeat(deps: BeginDeps, occurrence: Occurrence, agentId: string): Promise<void> {
  const { db, clock, agents, settingsOf, states, coalescer } = deps;
  const gone = { status: 'aborted', eventCount: 0, errorKind: 'agent_unavailable' } as const;
  const agent = agents.find(agentId);
  if (agent === undefined) return coalescer.end(occurrence, gone);
  const { correlationId, lane, reason, isPlanned = false } = occurrence;
  const { activeHours, prompt } = settingsOf(agent);
  // The beat was due within the hours but is late, because the machine slept or the beat was deferred.
  if (isPlanned && activeHours !== undefined && !isActive(activeHours, clock.now()))
    return coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
  const [checklist, events] = await Promise.all([deps.checklist(agent), db.read(waitingEvents, { agentId })]);
  if (checklist === undefined && events.length === 0) return coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
  // State stored for a deleted agent would be found by a later agent of the same name.
  if (agents.find(agentId) === undefined) return coalescer.end(occurrence, gone);
  const startedAtMs = clock.now();
  const before = states.of(agentId);
  const state = { ...before, lastRunAtMs: startedAtMs, lastSlotMs: deps.plan.slotOf(agentId) ?? before.lastSlotMs };
  const workId = newId('wi');
  const eventCount = events.length;
  const message = beatMessage({ prompt, checklist, events, nowMs: startedAtMs });
  const payload: BeatPayload = { correlationId, lane, reason, startedAtMs, eventCount, ...message };
  coalescer.began(agentId, startedAtMs);
  states.set(state);
  const beat = { workId, agentId, correlationId, lane, reason, eventCount, startedAtMs, bootId: deps.bootId };
  const asked = { id: workId, kind: beatKind, key: workId, digest: correlationId, agentId, payload, atMs: startedAtMs };
  try {
    const isBegun = await deps.durable.begin(asked, (work) => {
      const storing = db.write(deps.operations.begin, { beat, state, isPlanned, lastEventId: events.at(-1)?.id ?? 0, work });
      deps.beginning.set(
        workId,
        storing.catch(() => false),
      );
      return storing;
    });
    if (!isBegun) coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
  } finally {
    deps.beginning.delete(workId);
  }
}
