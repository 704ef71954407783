import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { SubAgentTelemetry } from '@gatehouse/contract';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { RunRow, AnnounceState } from './row.ts';

const shownTask = 200;

/** Emits the events of runs; call it after the commit. */
export function createRunEvents({ bus, clock }: { readonly bus: EventBus; readonly clock: Clock }) {
  const about = (row: RunRow) => ({
    runId: row.id,
    rootRunId: row.rootRunId,
    agentId: row.agentId,
    requesterRef: row.requesterRef,
    depth: row.depth,
    ...(row.parentRunId !== null && { parentRunId: row.parentRunId }),
    ...(row.graphId !== null && { graphId: row.graphId }),
    ...(row.nodeId !== null && { nodeId: row.nodeId }),
    timestamp: clock.now(),
  });

  return {
    spawned(row: RunRow): void {
      bus.emit('session:sub_agent_spawned', { ...about(row), task: headOf(row.task, shownTask) }, row.principalId);
    },
    queued(row: RunRow, at: { readonly queuePosition: number; readonly activeChildren: number; readonly maxChildren: number }): void {
      bus.emit('session:sub_agent_spawn_queued', { ...about(row), ...at }, row.principalId);
    },
    started(row: RunRow, resumed: boolean): void {
      bus.emit('session:sub_agent_spawn_started', { ...about(row), resumed }, row.principalId);
    },
    completed(row: RunRow): void {
      const telemetry = row.telemetryJson === null ? undefined : SubAgentTelemetry().parse(parseJson(row.telemetryJson));
      bus.emit(
        'session:sub_agent_completed',
        {
          ...about(row),
          success: row.state === 'completed',
          endReason: row.endReason ?? 'failed',
          runtimeMs: Math.max(0, (row.endedAtMs ?? clock.now()) - (row.startedAtMs ?? row.queuedAtMs)),
          tokensUsed: telemetry?.tokensUsedTotal ?? 0,
          cost: telemetry === undefined ? 0 : telemetry.costTotal,
        },
        row.principalId,
      );
    },
    lifecycleEnded(row: RunRow, announced: Exclude<AnnounceState, 'pending'>): void {
      bus.emit('session:sub_agent_lifecycle_ended', { ...about(row), announced }, row.principalId);
    },
    archived(row: RunRow): void {
      bus.emit('session:sub_agent_archived', about(row), row.principalId);
    },
  };
}
export type RunEvents = ReturnType<typeof createRunEvents>;
