import {
  ResultRef,
  type SubAgentCompletion,
  type SubAgentCompletionFacts,
  type SubAgentFacts,
  type SubAgentRecord,
  SubAgentTelemetry,
} from '@gatehouse/contract';
import type * as z from 'zod';
import { type CallContext, isAdmin } from '../../../../kernel/call-context.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { readOptions } from '../requests/options.ts';
import { readsResult } from './reach.ts';
import { isEnded, type RunRow } from '../run/row.ts';

/** Returns how a run ended, including its text; undefined while it has not. */
export function completionOf(row: RunRow): SubAgentCompletion | undefined {
  const facts = completionFacts(row);
  if (facts === undefined) return undefined;
  return {
    ...facts,
    ...(row.summary !== null && { summary: row.summary }),
    ...(row.resultRefJson !== null && { resultRef: ResultRef().parse(parseJson(row.resultRefJson)) }),
  };
}

/** Returns the completion that a caller may see: the cause of a failure is for admins. */
export function completionFor(row: RunRow, call: CallContext): SubAgentCompletion | undefined {
  const completion = readsResult(row, call) ? completionOf(row) : completionFacts(row);
  return completion === undefined || row.cause === null || !isAdmin(call) ? completion : { ...completion, cause: row.cause };
}

/** Returns the completion without any text of the run. */
export function completionFacts(row: RunRow): z.output<ReturnType<typeof SubAgentCompletionFacts>> | undefined {
  if (!isEnded(row) || row.endReason === null || row.endedAtMs === null) return undefined;
  const { effectsRefused } = telemetryOf(row) ?? {};
  return {
    endReason: row.endReason,
    completedAtMs: row.endedAtMs,
    ...(row.errorKind !== null && { errorKind: row.errorKind }),
    ...(effectsRefused !== undefined && { effectsRefused }),
  };
}

export function telemetryOf({ telemetryJson }: RunRow): SubAgentTelemetry | undefined {
  return telemetryJson === null ? undefined : SubAgentTelemetry().parse(parseJson(telemetryJson));
}

export function runtimeOf(row: RunRow, nowMs: number): number {
  return Math.max(0, (row.endedAtMs ?? nowMs) - (row.startedAtMs ?? row.queuedAtMs));
}

const fieldsOf = (row: RunRow) => ({
  runId: row.id,
  status: row.state,
  agentId: row.agentId,
  startedAt: row.startedAtMs ?? row.queuedAtMs,
  queuedAt: row.queuedAtMs,
  depth: row.depth,
  rootRunId: row.rootRunId,
  ...(row.graphId !== null && { graphId: row.graphId }),
  ...(row.nodeId !== null && { nodeId: row.nodeId }),
});

export function factsOf(row: RunRow): z.output<ReturnType<typeof SubAgentFacts>> {
  const completion = completionFacts(row);
  return { ...fieldsOf(row), ...(completion !== undefined && { completion }) };
}

export function recordOf(row: RunRow, nowMs: number): SubAgentRecord {
  const facts = completionOf(row);
  const completion = facts === undefined || row.cause === null ? facts : { ...facts, cause: row.cause };
  const telemetry = telemetryOf(row);
  const { model } = readOptions(row.optionsJson);
  return {
    ...fieldsOf(row),
    ...(completion !== undefined && { completion }),
    task: row.task,
    ...(model !== undefined && { model }),
    conversationRef: row.conversationRef,
    requesterRef: row.requesterRef,
    ...(row.parentRunId !== null && { parentRunId: row.parentRunId }),
    principalId: row.principalId,
    runtimeMs: runtimeOf(row, nowMs),
    ...(telemetry !== undefined && { telemetry }),
  };
}
