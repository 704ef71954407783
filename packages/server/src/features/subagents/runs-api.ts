import { AppError } from '../../kernel/app-error.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import type { AgentsApi } from '../agents/api.ts';
import type { Accepted, RunAcceptance } from './acceptance.ts';
import type { RunEnd, RunRequest, SubagentsApi } from './api.ts';
import type { SpawnGate } from './gate.ts';
import { type PlanDeps, planRun } from './plan-run.ts';
import { headOf } from '../../kernel/cut-text.ts';
import { isEnded, type RunRow } from './row.ts';
import type { RunEvents } from './run-events.ts';
import { findRun } from './store.ts';
import { completionOf, telemetryOf } from './view.ts';
import type { Waiters } from './waiters.ts';

interface RunsApiDeps extends PlanDeps {
  readonly db: Db;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly gate: SpawnGate;
  readonly events: RunEvents;
  readonly waiters: Waiters;
  readonly wake: () => void;
  readonly accept: Operation<RunAcceptance, Accepted>;
  readonly kill: SubagentsApi['kill'];
  readonly counts: SubagentsApi['counts'];
  readonly onStopped: SubagentsApi['onStopped'];
}

/** Runs for pieces of work of other features: started once for each key, waited for, ended. */
export function createRunsApi(deps: RunsApiDeps): SubagentsApi {
  const { db, config } = deps;

  async function conversationOf(runId: string | undefined): Promise<{ readonly ref: string; readonly sessionKey: string } | undefined> {
    const row = runId === undefined ? undefined : await db.read(findRun, { id: runId });
    return row === undefined ? undefined : { ref: row.conversationRef, sessionKey: row.sessionKey };
  }

  async function start(request: RunRequest) {
    const agent = deps.agents.find(request.agentId);
    if (agent === undefined) throw new AppError('not_found', `Agent not found: ${request.agentId}`, { param: 'agentId' });
    const { asked } = request;
    const asking = asked === undefined ? undefined : deps.agents.find(asked.agentId);
    if (asked !== undefined && asking === undefined) throw new AppError('denied', 'The agent that asked is gone');
    const plan = planRun(deps, {
      agent,
      principalId: request.principalId,
      tokenId: request.tokenId,
      rootRunId: request.rootRunId,
      parentLeaseId: request.parentLeaseId,
      parentRunId: request.parentRunId ?? null,
      depth: request.depth,
      task: request.shownTask ?? request.task,
      message: request.task,
      model: request.model,
      maxSteps: request.maxSteps,
      timeoutMs: request.timeoutMs,
      policies: request.toolPolicy === undefined ? [] : [request.toolPolicy],
      askedBy: { origin: asked?.origin ?? 'rpc', bounds: asked?.bounds, agent: asking },
      caps: request.caps ?? deps.autonomy.standing(agent, undefined).caps,
      requester: { key: request.key, ref: null, agentId: null, counted: false },
      announce: { to: 'none', target: null, runId: null },
      graph: request.graph,
      conversation: await conversationOf(request.conversationOf),
    });
    const accepted = await db.write(deps.accept, { ...plan, key: { key: JSON.stringify(['run', request.key]), digest: '', maxAgeMs: Infinity } });
    // No limits were named.
    if ('refused' in accepted) throw new AppError('precondition_failed', 'No sub-agents are taken');
    const runId = accepted.isNew ? plan.row.id : accepted.runId;
    if (accepted.isNew) {
      const row = await db.read(findRun, { id: runId });
      if (row !== undefined) deps.events.spawned(row);
    }
    deps.wake();
    return { runId, isNew: accepted.isNew };
  }

  async function ended(runId: string, signal: AbortSignal): Promise<RunEnd> {
    for (;;) {
      signal.throwIfAborted();
      const changed = Promise.withResolvers<void>();
      const look = () => changed.resolve();
      const unlisten = deps.waiters.listen([runId], look);
      signal.addEventListener('abort', look, { once: true });
      try {
        const row = await db.read(findRun, { id: runId });
        if (row === undefined) throw new AppError('not_found', `Unknown run ID: ${runId}`);
        if (isEnded(row)) return endOf(row);
        await changed.promise;
      } finally {
        unlisten();
        signal.removeEventListener('abort', look);
      }
    }
  }

  function endOf(row: RunRow): RunEnd {
    const completion = completionOf(row);
    if (completion === undefined) throw new RangeError('a run that has not ended has no end');
    return {
      runId: row.id,
      conversationRef: row.conversationRef,
      completion,
      telemetry: telemetryOf(row),
      text: headOf(row.resultText ?? '', config.graphMaxResultLength),
    };
  }

  return { start, ended, kill: deps.kill, refusal: () => deps.gate.refusal?.error, counts: deps.counts, onStopped: deps.onStopped };
}
