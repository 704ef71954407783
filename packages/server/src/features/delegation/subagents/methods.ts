import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { Waiting } from '../../unattended/durable/api.ts';
import { viewOfWait } from '../../../runtime/waiting-view.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentToAgentConfig } from './config.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { SpawnGate } from './requests/gate.ts';
import { findRuns, listRuns } from './status/list-store.ts';
import { isRequester, notRunning, reachOf, unknownRun } from './status/reach.ts';
import { isEnded, type RunRow } from './run/row.ts';
import type { createSpawn } from './requests/spawn/spawn.ts';
import type { createSteer } from './requests/steer.ts';
import { completionFor, factsOf, recordOf, runtimeOf, telemetryOf } from './status/view.ts';
import type { createWait } from './status/wait.ts';

export type SubagentMethods = HandlersOf<
  'session.spawn' | 'session.run_status' | `subagent.${'list' | 'wait' | 'kill' | 'steer' | 'pause' | 'resume' | 'status'}`
>;

export interface MethodDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly config: Live<AgentToAgentConfig>;
  readonly gate: SpawnGate;
  readonly spawn: ReturnType<typeof createSpawn>;
  /** Returns what a run waits for. */
  readonly waitingOfRun: Operation<{ readonly runId: string }, Waiting | undefined>;
  readonly wait: ReturnType<typeof createWait>;
  readonly steer: ReturnType<typeof createSteer>;
  /** Kills a run and what it delegated; false when it had already ended. */
  readonly kill: (row: RunRow, notify: boolean, audit: AuditRow) => Promise<boolean>;
}

const minuteMs = 60_000;
const maxListed = 1000;

/** Creates the methods of sub-agents (json-rpc.md §4). */
export function createSubagentMethods(deps: MethodDeps): SubagentMethods {
  const { db, clock, config, gate } = deps;

  /** Finds a run that the caller may see; unknown, foreign and malformed ids get the same answer. */
  async function runOf(id: string, call: CallContext): Promise<RunRow> {
    const [row] = await db.read(findRuns, { ...reachOf(call), ids: [id] });
    if (row === undefined) throw unknownRun(id);
    return row;
  }

  async function pause(paused: boolean, call: CallContext) {
    const changed = gate.pause(paused);
    if (changed) await recordAudit(deps, call, { actionType: paused ? 'subagent.pause' : 'subagent.resume', classification: 'mutate' });
    return { ...gate.state, changed };
  }

  return {
    // Only the agent's tool knows whether the agent had read text from outside.
    'session.spawn': (params, call) => deps.spawn(params, call, true),

    async 'session.run_status'({ runId }, call) {
      const row = await runOf(runId, call);
      const base = { runId: row.id, agentId: row.agentId, runtimeMs: runtimeOf(row, clock.now()) };
      if (row.state === 'queued') return { status: 'queued', ...base, queuedAt: row.queuedAtMs };
      const startedAt = row.startedAtMs ?? row.queuedAtMs;
      if (row.state === 'running') {
        const waiting = await db.read(deps.waitingOfRun, { runId });
        return { status: 'running', ...base, startedAt, queuedAt: row.queuedAtMs, ...(waiting && { waiting: viewOfWait(waiting, isAdmin(call)) }) };
      }
      const completion = completionFor(row, call);
      if (completion === undefined) throw unknownRun(runId);
      const telemetry = telemetryOf(row);
      return { status: row.state, ...base, startedAt, completion, ...(telemetry !== undefined && { telemetry }) };
    },

    async 'subagent.list'({ recentMinutes, agentId, rootRunId }, call) {
      const isWhole = isAdmin(call);
      const param = agentId === undefined ? 'rootRunId' : 'agentId';
      if (!isWhole && (agentId !== undefined || rootRunId !== undefined))
        throw new AppError('invalid_params', `${param}: only an admin may name it`, { param });
      const nowMs = clock.now();
      const rows = await db.read(listRuns, {
        ...reachOf(call),
        agentId: agentId ?? null,
        rootRunId: rootRunId ?? null,
        sinceMs: nowMs - recentMinutes * minuteMs,
        limit: maxListed,
      });
      return { runs: rows.map((row) => (isWhole ? recordOf(row, nowMs) : factsOf(row))), total: rows.length };
    },

    async 'subagent.wait'({ runIds, timeoutMs = config.current.waitTimeoutMs }, call) {
      const { results } = await deps.wait(runIds, timeoutMs, call);
      return { results };
    },

    async 'subagent.kill'({ target }, call) {
      const row = await runOf(target, call);
      const audit = auditRow(call, clock.now(), { actionType: 'subagent.kill', classification: 'destructive', target: row.id });
      if (isEnded(row) || !(await deps.kill(row, !isRequester(row, call), audit))) throw notRunning(target);
      announceAudit(deps.bus, audit);
      return { killed: true, runId: row.id };
    },

    async 'subagent.steer'({ target, message }, call) {
      const row = await runOf(target, call);
      if (isEnded(row)) throw notRunning(target);
      return deps.steer(row, message, call);
    },

    'subagent.pause': (_, call) => pause(true, call),
    'subagent.resume': (_, call) => pause(false, call),
    'subagent.status': async () => gate.state,
  };
}
