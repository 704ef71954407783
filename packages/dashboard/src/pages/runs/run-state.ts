import type { EventPayload, Result } from '@gatehouse/contract';

export type RootRun = Result<'run.list'>['runs'][number];
type Listed = Result<'subagent.list'>['runs'][number];
type Completion = NonNullable<Result<'subagent.wait'>['results'][number]['completion']>;

/** A sub-agent run as this page knows it: from the list and from later events. */
export interface Run {
  readonly runId: string;
  readonly rootRunId: string;
  readonly parentRunId?: string | undefined;
  readonly agentId: string;
  readonly status: Listed['status'];
  readonly depth: number;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  readonly endReason?: Completion['endReason'] | undefined;
  readonly errorKind?: string | undefined;
  /** Why it failed; known to admins only. */
  readonly cause?: string | undefined;
  readonly graphId?: string | undefined;
  readonly nodeId?: string | undefined;
  /** Known to admins only, except from events. */
  readonly task?: string | undefined;
  readonly tokens?: number | undefined;
  /** US dollars; null when a price is unknown. */
  readonly cost?: number | null | undefined;
}

export type Runs = ReadonlyMap<string, Run>;

/** Maximum length of a task in a row; the details have the full text. */
const taskLength = 200;
/** Upper bound above the number of runs that the gateway keeps. */
const maxRuns = 1000;

export function isActive({ status }: Pick<Run, 'status'>): boolean {
  return status === 'queued' || status === 'running';
}

export function runOf(listed: Listed): Run {
  const { runId, rootRunId = '', agentId, status, depth = 1, startedAt, graphId, nodeId, completion } = listed;
  return {
    runId,
    rootRunId,
    agentId,
    status,
    depth,
    startedAt,
    graphId,
    nodeId,
    ...(completion !== undefined && { endedAt: completion.completedAtMs, endReason: completion.endReason, errorKind: completion.errorKind }),
    ...(completion !== undefined && 'cause' in completion && { cause: completion.cause }),
    ...('task' in listed && {
      task: listed.task.slice(0, taskLength),
      parentRunId: listed.parentRunId,
      tokens: listed.telemetry?.tokensUsedTotal,
      cost: listed.telemetry?.costTotal,
    }),
  };
}

type SpawnEvent = EventPayload<'session:sub_agent_spawned'>;

/**
 * Applies events to the runs of one root; returns the same map, and the same run objects, where nothing changes. An
 * ended run never changes back: an event may be older than the list.
 */
export function applyEvents(runs: Runs, rootRunId: string, events: readonly { readonly kind: string; readonly payload: unknown }[]): Runs {
  let next: Map<string, Run> | undefined;
  for (const { kind, payload } of events) {
    if (!kind.startsWith('session:sub_agent_') || !isOf(payload, rootRunId)) continue;
    const before = (next ?? runs).get(payload.runId);
    if (kind === 'session:sub_agent_archived') {
      if (before !== undefined) (next ??= new Map(runs)).delete(payload.runId);
      continue;
    }
    const after = changed(before, kind, payload);
    if (after !== before) (next ??= new Map(runs)).set(payload.runId, after);
  }
  if (next === undefined) return runs;
  for (const [id, run] of next) {
    if (next.size <= maxRuns) break;
    if (!isActive(run)) next.delete(id);
  }
  return next;
}

function changed(before: Run | undefined, kind: string, event: SpawnEvent): Run {
  if (before !== undefined && !isActive(before)) return before;
  const { runId, rootRunId, parentRunId, agentId, depth, graphId, nodeId, timestamp } = event;
  const run: Run = before ?? { runId, rootRunId, parentRunId, agentId, depth, graphId, nodeId, status: 'queued', startedAt: timestamp };
  switch (kind) {
    case 'session:sub_agent_spawned':
      return run.task === undefined && event.task !== undefined ? { ...run, task: event.task } : run;
    case 'session:sub_agent_spawn_started':
      return run.status === 'running' ? run : { ...run, status: 'running', startedAt: timestamp };
    case 'session:sub_agent_completed': {
      const { success, endReason, runtimeMs, tokensUsed, cost } = event as SpawnEvent & EventPayload<'session:sub_agent_completed'>;
      return {
        ...run,
        status: success ? 'completed' : 'failed',
        endReason,
        endedAt: timestamp,
        startedAt: timestamp - runtimeMs,
        tokens: tokensUsed,
        cost,
      };
    }
    default:
      return run;
  }
}

function isOf(payload: unknown, rootRunId: string): payload is SpawnEvent {
  return typeof payload === 'object' && payload !== null && 'runId' in payload && 'rootRunId' in payload && payload.rootRunId === rootRunId;
}

export interface Branch {
  readonly run: Run;
  readonly children: readonly Branch[];
}

/** Returns the runs of a root as a tree, newest last; a run with an unknown parent is at the top level. */
export function treeOf(runs: Runs): readonly Branch[] {
  const below = new Map<string | undefined, Run[]>();
  for (const run of runs.values()) {
    const parent = run.parentRunId !== undefined && run.parentRunId !== run.runId && runs.has(run.parentRunId) ? run.parentRunId : undefined;
    below.set(parent, [...(below.get(parent) ?? []), run]);
  }
  const seen = new Set<string>();
  const grow = (parent: string | undefined): readonly Branch[] =>
    (below.get(parent) ?? [])
      .toSorted((a, b) => a.startedAt - b.startedAt || (a.runId < b.runId ? -1 : 1))
      .flatMap((run) => {
        if (seen.has(run.runId)) return [];
        seen.add(run.runId);
        return [{ run, children: grow(run.runId) }];
      });
  return grow(undefined);
}
