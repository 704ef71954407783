import { AppError } from '../../../../kernel/app-error.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { RunEnd, RunRequest, SubagentsApi, WaitingRun } from '../api.ts';
import type { SpawnGate } from './gate.ts';
import { type PlanDeps, planRun } from './plan-run.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { isEnded, type RunRow } from '../run/row.ts';
import type { Runner } from '../run/runner.ts';
import { findRun } from '../store.ts';
import { completionOf, telemetryOf } from '../status/view.ts';
import type { Waiters } from '../status/waiters.ts';

export interface RunsApiDeps extends PlanDeps {
  readonly db: Db;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly gate: SpawnGate;
  readonly waiters: Waiters;
  readonly runner: Pick<Runner, 'start' | 'live'>;
  readonly kill: SubagentsApi['kill'];
  readonly counts: SubagentsApi['counts'];
  readonly onStopped: SubagentsApi['onStopped'];
  readonly said: SubagentsApi['said'];
  readonly waitingOf: Operation<{ readonly graphId: string }, readonly WaitingRun[]>;
  readonly offerToNodes: SubagentsApi['offerToNodes'];
}

/** Starts, awaits and stops runs for the work of other features, once for each key. */
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
    if (asked !== undefined && asking === undefined) throw new AppError('denied', 'The requesting agent no longer exists');
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
      announce: { to: 'none', target: null, runId: null, endpoint: request.endpoint },
      graph: request.graph,
      conversation: await conversationOf(request.conversationOf),
    });
    const key = { key: JSON.stringify(['run', request.key]), digest: '', sinceMs: -Infinity };
    const accepted = await deps.runner.start({ ...plan, key }, request.conversationOf === undefined);
    // No limits were given.
    if ('refused' in accepted) throw new AppError('precondition_failed', 'No sub-agents are accepted');
    return { runId: accepted.isNew ? plan.row.id : accepted.runId, isNew: accepted.isNew };
  }

  async function ended(runId: string, signal: AbortSignal): Promise<RunEnd> {
    signal.throwIfAborted();
    const end = Promise.withResolvers<RunRow>();
    // It may be aborted while the row is read.
    end.promise.catch(() => {});
    const unlisten = deps.waiters.listen([runId], end.resolve);
    const abort = () => end.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      const live = deps.runner.live(runId);
      // A run that is active here has ended only when its final row is set.
      const row = live === undefined ? await db.read(findRun, { id: runId }) : live.ended;
      if (live === undefined && row === undefined) throw new AppError('not_found', `Unknown run ID: ${runId}`);
      return endOf(row !== undefined && isEnded(row) ? row : await end.promise);
    } finally {
      unlisten();
      signal.removeEventListener('abort', abort);
    }
  }

  function endOf(row: RunRow): RunEnd {
    const completion = completionOf(row);
    if (completion === undefined) throw new RangeError('the run has not ended');
    return {
      runId: row.id,
      conversationRef: row.conversationRef,
      completion,
      telemetry: telemetryOf(row),
      cause: row.cause,
      text: headOf(row.resultText ?? '', config.current.graphMaxResultLength),
      tainted: row.tainted === 1,
    };
  }

  return {
    start,
    ended,
    onWait: (runId, waits) => deps.waiters.onWait(runId, waits),
    waitingOf: (graphId) => db.read(deps.waitingOf, { graphId }),
    kill: deps.kill,
    refusal: () => deps.gate.refusal?.error,
    counts: deps.counts,
    onStopped: deps.onStopped,
    said: deps.said,
    offerToNodes: deps.offerToNodes,
  };
}
